"""Stores from other packages: found by entry point, with a clear error when one cannot be used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import invalidate_caches
from pathlib import Path

import pytest

from rota import Rota
from rota.errors import ConfigError
from rota.store.open import open_store

MODULE = """
from rota.store.sqlite.store import SqliteStore

def open_shelf(url):
    return SqliteStore(url.replace("shelf://", "sqlite://"))
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Write a package with its metadata into a folder that is searched for packages."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(name: str, entry: str, module: str = MODULE, scheme: str = "shelf") -> None:
        (tmp_path / f"{name}.py").write_text(module)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[rota.stores]\n{scheme} = {entry}\n")
        invalidate_caches()

    before = set(sys.modules)
    yield install
    for module in set(sys.modules) - before:
        if getattr(sys.modules[module], "__file__", None) and str(tmp_path) in str(
            sys.modules[module].__file__
        ):
            del sys.modules[module]


async def test_an_installed_store_is_used_by_its_scheme(install: Install, tmp_path: Path) -> None:
    install("rota_shelf", "rota_shelf:open_shelf")
    app = Rota(f"shelf:///{tmp_path}/jobs.db")

    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    job = await add.enqueue(1, 2)
    assert [one.id for one in (await app.jobs()).items] == [job.id]
    await app.close()
    assert (tmp_path / "jobs.db").exists()


def test_a_store_that_fails_to_import_is_named_with_its_error(install: Install) -> None:
    install("rota_broken", "rota_broken:open", "import a_driver_that_is_missing")
    with pytest.raises(ConfigError, match=r"rota_broken.*a_driver_that_is_missing.*uninstall") as caught:
        open_store("shelf://user:secret@host/x")
    assert "secret" not in str(caught.value)


def test_an_entry_point_without_its_function_is_an_error(install: Install) -> None:
    install("rota_empty", "rota_empty:open", "")
    with pytest.raises(ConfigError, match=r"rota_empty.*AttributeError"):
        open_store("shelf://x")


def test_an_entry_point_that_cannot_be_called_is_an_error(install: Install) -> None:
    install("rota_text", "rota_text:open", "open = 'no function'")
    with pytest.raises(ConfigError, match=r"rota_text.*is of type str.*callable that takes a URL"):
        open_store("shelf://x")


def test_two_packages_for_one_scheme_are_an_error(install: Install) -> None:
    install("rota_one", "rota_one:open_shelf")
    install("rota_two", "rota_two:open_shelf")
    with pytest.raises(ConfigError, match=r"rota_one.* and rota_two.*uninstall all but one"):
        open_store("shelf://x")


def test_a_plug_in_may_serve_a_database_that_rota_has_no_store_for(install: Install, tmp_path: Path) -> None:
    module = MODULE.replace("shelf://", "redis://")
    install("rota_redis", "rota_redis:open_shelf", module, scheme="redis")
    assert open_store(f"redis:///{tmp_path}/x.db").url.startswith("sqlite://")


def test_a_plug_in_cannot_replace_a_store_of_rota(install: Install, tmp_path: Path) -> None:
    install("rota_thief", "rota_thief:open", "raise RuntimeError('must not be imported')", scheme="sqlite")
    assert open_store(f"sqlite:///{tmp_path}/x.db").url.endswith("x.db")


def test_an_unknown_scheme_names_the_plug_ins_too(install: Install) -> None:
    install("rota_shelf", "rota_shelf:open_shelf")
    with pytest.raises(ConfigError, match=r"unknown store scheme 'shelves'.*plug-ins shelf://"):
        open_store("shelves://x")
