"""What a ``sqlite:`` URL means. Must never touch the file."""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from ...config.passwords import without_password
from ...errors import ConfigError

OLDEST = (3, 35, 0)
SHAPES = "sqlite:///relative.db, sqlite:////absolute/path.db or sqlite://:memory:"
SYNCHRONOUS = ("full", "normal")


class SqliteUrl(NamedTuple):
    url: str
    path: str | None  # None: in memory
    synchronous: str = "full"
    patience_s: float = 30.0  # how long to wait for other processes' writes


def parse(url: str) -> SqliteUrl:
    """The address of a URL, or a ConfigError that says what is wrong with it."""
    body, _, query = url.partition("?")
    path = unquote(body.partition("://")[2])
    if path in (":memory:", "/:memory:"):
        return SqliteUrl(url, None, **_options(url, query))
    if not path.startswith("/") or len(path) == 1 or path.endswith("/"):
        raise ConfigError(f"{without_password(url)!r} names no database file: write {SHAPES}")
    return SqliteUrl(url, path[1:], **_options(url, query))


def _options(url: str, query: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "synchronous" and value.lower() in SYNCHRONOUS:
            options["synchronous"] = value.lower()
        elif name == "timeout" and _seconds(value) is not None:
            options["patience_s"] = float(value)
        elif name == "check_same_thread":  # of Python's sqlite3; rota's connections stay in their threads
            continue
        else:
            raise ConfigError(
                f"{without_password(url)!r}: cannot use the option {name!r}; a SQLite URL takes "
                "synchronous=full|normal and timeout=SECONDS (0 to 3600, how long to wait for a lock)"
            )
    return options


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 3600 else None


def require_recent_sqlite(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    if version < OLDEST:
        raise ConfigError(
            f"rota needs SQLite {'.'.join(map(str, OLDEST))} or newer, but this Python was built with "
            f"{'.'.join(map(str, version))}: use a newer Python or a newer system SQLite"
        )
