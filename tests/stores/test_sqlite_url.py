"""SQLite: what URLs mean, and what is said about files that cannot be used."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rota.errors import ConfigError, RotaError, StoreUnavailable
from rota.store.sqlite.store import SqliteStore
from rota.store.sqlite.url import parse, require_recent_sqlite


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///relative.db", "relative.db"),
        ("sqlite:////var/lib/rota.db", "/var/lib/rota.db"),
        ("sqlite:///with%20space.db", "with space.db"),
        ("sqlite://:memory:", None),
        ("sqlite:///:memory:", None),
    ],
)
def test_a_url_names_a_file_or_memory(url: str, path: str | None) -> None:
    assert parse(url).path == path


@pytest.mark.parametrize("url", ["sqlite://", "sqlite://shop.db", "sqlite:///", "sqlite:///folder/"])
def test_a_url_without_a_file_is_refused_with_the_right_shapes(url: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:///relative"):
        parse(url)


def test_options_are_read_and_checked() -> None:
    address = parse("sqlite:///a.db?synchronous=NORMAL&timeout=2.5")
    assert (address.synchronous, address.patience_s) == ("normal", 2.5)
    for bad in ("synchronous=off", "timeout=-1", "timeout=soon", "cache=shared"):
        with pytest.raises(ConfigError, match=bad.partition("=")[0]):
            parse(f"sqlite:///a.db?{bad}")


def test_an_old_sqlite_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"3\.35\.0 or newer.*3\.34\.1"):
        require_recent_sqlite((3, 34, 1))


async def test_nothing_is_opened_before_the_first_use(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    store = SqliteStore(f"sqlite:///{path}")
    assert not path.exists()
    await store.open()
    assert path.exists()
    await store.close()


async def test_the_file_belongs_to_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    store = SqliteStore(f"sqlite:///{path}")
    await store.open()
    for name in os.listdir(tmp_path):
        assert stat.S_IMODE(os.stat(tmp_path / name).st_mode) == 0o600, name
    await store.close()


async def refused(url: str) -> RotaError:
    store = SqliteStore(url)
    try:
        with pytest.raises(RotaError) as caught:
            await store.open()
    finally:
        await store.close()
    return caught.value


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    error = await refused(f"sqlite:///{tmp_path}/nowhere/rota.db")
    assert isinstance(error, ConfigError)
    assert "nowhere does not exist" in str(error)


async def test_a_directory_is_not_a_database(tmp_path: Path) -> None:
    error = await refused(f"sqlite:///{tmp_path}")
    assert isinstance(error, ConfigError)
    assert "is a directory" in str(error)


async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear database, " * 100)
    error = await refused(f"sqlite:///{path}")
    assert isinstance(error, ConfigError)
    assert "letter.txt is not an SQLite database" in str(error)
    assert path.read_text() == "Dear database, " * 100


async def test_a_closed_store_raises_and_can_be_opened_again(tmp_path: Path) -> None:
    store = SqliteStore(f"sqlite:///{tmp_path}/rota.db")
    await store.open()
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.documents("worker")
    await store.open()
    assert await store.documents("worker") == []
    await store.close()
