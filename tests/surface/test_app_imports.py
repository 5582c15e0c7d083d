"""The setting ``imports``: modules with tasks that a worker imports, by name or by pattern."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import ConfigError, Rota
from rota.tasks.discovery import find_modules, import_modules

APP = 'from rota import Rota\napp = Rota("sqlite:///shop.db", imports={imports})\n'
TASKS = "from {package}.app import app\n@app.task\ndef {task}(): ...\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with tasks in two packages below it, one of them without ``__init__.py``."""
    name = f"shop_{tmp_path.name.replace('-', '_')}"
    root = tmp_path / name
    for part in ("mail", "orders", "empty"):
        (root / part).mkdir(parents=True)
    (root / "__init__.py").touch()
    (root / "app.py").write_text(APP.format(imports=[f"{name}.*.tasks"]))
    (root / "mail" / "__init__.py").touch()
    (root / "mail" / "tasks.py").write_text(TASKS.format(package=name, task="send"))
    (root / "orders" / "tasks.py").write_text(TASKS.format(package=name, task="charge"))
    (root / "broken.py").write_text("1 / 0\n")
    (root / "lacking.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield name
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]


def app_of(package: str) -> Rota:
    app: Rota = __import__(f"{package}.app", fromlist=["app"]).app
    return app


async def test_a_worker_imports_the_modules_that_match(package: str) -> None:
    app = app_of(package)
    assert app.registry.names == ()
    async with app.worker(scheduler=False, upkeep=False):
        assert sorted(app.registry.names) == ["charge", "send"]
    await app.close()


def test_importing_twice_changes_nothing(package: str) -> None:
    app = app_of(package)
    names = [f"{package}.mail.tasks", f"{package}.orders.tasks"]
    assert app.import_tasks() == names
    assert app.import_tasks() == names
    assert sorted(app.registry.names) == ["charge", "send"]


def test_imports_come_from_the_environment_too(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_IMPORTS", f"{package}.mail.tasks,{package}.orders.tasks")
    assert Rota("sqlite://:memory:").settings.imports == (f"{package}.mail.tasks", f"{package}.orders.tasks")


@pytest.mark.parametrize("pattern", ["{}.*", "{}.m*"])
def test_a_pattern_matches_one_name_or_part_of_one(package: str, pattern: str) -> None:
    assert f"{package}.mail" in find_modules(pattern.format(package))
    assert f"{package}.mail.tasks" not in find_modules(pattern.format(package))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{}.nothing", r"there is no module '{}\.nothing' on the Python path; run rota where your code is"),
        ("{}.broken", r"importing {}\.broken failed: ZeroDivisionError: division by zero"),
        ("{}.lacking", r"importing {}\.lacking failed: No module named 'no_such_module_anywhere'"),
        ("{}.x*", r"no module matches '{}\.x\*'"),
        ("*.tasks", r"'\*\.tasks' names no module: write shop.mail"),
        ("{}..tasks", r"names no module"),
        ("", r"names no module"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named(package: str, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match="^imports: .*" + message.format(package)):
        import_modules([name.format(package)])


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_command_line_imports_modules_beside_the_app(package: str, processes: str) -> None:
    Path(package, "app.py").write_text(APP.format(imports=[]))
    worker = [sys.executable, "-m", "rota", "worker", "--app", f"{package}.app:app", "--burst"]
    bare = subprocess.run(worker, capture_output=True, text=True, timeout=60)
    assert bare.returncode == 2
    assert "the app has no tasks: name the modules that declare them, with --import" in bare.stderr
    given = ["--import", f"{package}.mail.tasks", "--import", f"{package}.*.tasks", "--processes", processes]
    ran = subprocess.run(
        [*worker, *given, "--log-format", "text"], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert "send, charge" in ran.stderr
