"""``--reload``: a worker under development follows its source files."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cli.command import SHOP, eventually, make_shop, read_json, rota_command, said, started
from rota.cli.parts.source_watch import SourceWatch


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make_shop(tmp_path)


def result(shop: Path) -> int | None:
    done = rota_command("jobs", "enqueue", "add", "--payload", '{"a": 1, "b": 2}', "--wait", "--json",
                        "--url", "sqlite:///shop.db", cwd=shop)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: int = read_json("jobs", "list", "--url", "sqlite:///shop.db", "--limit", "1", cwd=shop)["items"][
        0
    ]["output"]
    return found


def write(path: Path, text: str) -> None:
    """In one step, as editors do: a look between two steps would find half of it."""
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)


def test_a_worker_restarts_with_the_changed_source_and_survives_a_mistake(shop: Path) -> None:
    with started("worker", "--app", "shop:app", "--log-format", "text", "--reload", cwd=shop) as worker:
        eventually(lambda: " started: " in said(shop), "the worker is up")
        assert result(shop) == 3
        write(shop / "shop.py", SHOP.replace("return a + b", "return a + b + 100"))
        eventually(lambda: said(shop).count(" started: ") == 2, "it starts again")
        assert "shop.py changed; restarting" in said(shop)
        assert result(shop) == 103
        write(shop / "shop.py", SHOP + "\ndef broken(:\n")
        eventually(lambda: "waiting for a source file to change" in said(shop), "the mistake is reported")
        assert "SyntaxError" in said(shop)
        write(shop / "shop.py", SHOP)
        eventually(lambda: said(shop).count(" started: ") == 3, "it starts with the repaired file")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0


def test_rota_up_restarts_too(shop: Path) -> None:
    with started(
        "up", "--app", "shop:app", "--log-format", "text", "--port", "0", "--reload", cwd=shop
    ) as up:
        eventually(lambda: " started: " in said(shop), "it is up")
        write(shop / "shop.py", SHOP + "\n# edited\n")
        eventually(lambda: said(shop).count(" started: ") == 2, "it starts again")
        up.send_signal(signal.SIGINT)
        assert up.wait(30) == 0


def test_only_sources_of_the_program_are_watched(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    (package / "mail").mkdir(parents=True)
    (package / ".hidden").mkdir()
    for name in ("__init__.py", "mail/__init__.py", "mail/tasks.py", ".hidden/x.py"):
        (package / name).write_text("")
    single = tmp_path / "alone" / "jobs.py"
    (single.parent / "below").mkdir(parents=True)
    single.write_text("")
    modules = {"os": os, "pytest": pytest, "rota": sys.modules["rota"]}
    for name, path in {
        "shop": package / "__init__.py",
        "shop.mail": package / "mail/__init__.py",
        "jobs": single,
    }.items():
        modules[name] = module = ModuleType(name)
        module.__file__ = str(path)
        if path.name == "__init__.py":
            module.__path__ = [str(path.parent)]
    watch = SourceWatch(modules)
    assert watch.changed() == []
    (package / "mail" / "new.py").write_text("new")
    (package / "mail" / "tasks.py").unlink()
    (package / ".hidden" / "x.py").write_text("x")
    (package / "notes.txt").write_text("x")
    single.write_text("longer")
    (single.parent / "below" / "x.py").write_text("x")
    changed = {Path(name).relative_to(tmp_path.resolve()).as_posix() for name in watch.changed()}
    assert changed == {"shop/mail/new.py", "shop/mail/tasks.py", "alone/jobs.py"}
    assert watch.changed() == []
