"""A URL becomes a store. The only place that names the stores.

The driver is imported here and only when its scheme is asked for; nothing is connected. Other stores
come as plug-ins: an entry point in the group ``rota.stores``, named like the scheme of their URLs, that
leads to a callable which takes a URL and returns a store.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from ..config.passwords import without_password
from ..errors import ConfigError, MissingDriver
from .protocol import Store


def _sqlite(url: str) -> Store:
    from .sqlite.store import SqliteStore

    return SqliteStore(url)


def _postgres(url: str) -> Store:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise MissingDriver(
            f"{without_password(url)}: PostgreSQL needs the psycopg driver, which cannot be imported "
            f'({error}): pip install "rota[postgres]"'
        ) from error
    from .postgres.store import PostgresStore

    return PostgresStore(url)


STORES: dict[str, Callable[[str], Store]] = {
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
}
# What SQLAlchemy's users have at hand: the driver after the + says nothing about the database.
DRIVERS = {
    "postgresql": ("asyncpg", "psycopg", "psycopg_async", "psycopg2", "psycopg2cffi", "pg8000", "aiopg"),
    "sqlite": ("pysqlite", "aiosqlite"),
}
SPELLINGS = {f"{scheme}+{driver}": scheme for scheme, drivers in DRIVERS.items() for driver in drivers}
SPELLINGS |= {name.replace("postgresql", "postgres"): scheme for name, scheme in SPELLINGS.items()}
PLUG_INS = "rota.stores"  # the group of entry points
# Databases that people will try, under every scheme they are known by.
ELSEWHERE = {
    "mongodb": "MongoDB",
    "mongodb+srv": "MongoDB",
    "redis": "Redis",
    "rediss": "Redis",
    "valkey": "Valkey",
    "mysql": "MySQL",
    "mariadb": "MariaDB",
}
KNOWN = "sqlite:///path/to/file.db, sqlite://:memory: and postgresql://user@host/database"


def open_store(url: str) -> Store:
    """The store that the URL names, not connected yet."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise ConfigError(f"{without_password(url)!r} is not a store URL: this version knows {KNOWN}")
    scheme = scheme.lower()
    if (plain := SPELLINGS.get(scheme)) is not None:
        scheme, url = plain, plain + url[len(scheme) :]
    make = STORES.get(scheme) or _plug_in(scheme, url)
    if make is not None:
        return make(url)
    if scheme in ELSEWHERE:
        raise ConfigError(
            f"{without_password(url)}: this version has no store for {ELSEWHERE[scheme]}; it has {KNOWN}"
        )
    raise ConfigError(
        f"{without_password(url)}: unknown store scheme {scheme!r}{_nearest(scheme)}; "
        f"this version knows {_known()}"
    )


def _plug_in(scheme: str, url: str) -> Callable[[str], Store] | None:
    """What an installed package offers for the scheme."""
    found = {point.value: point for point in entry_points(group=PLUG_INS, name=scheme)}
    if not found:
        return None
    if len(found) > 1:
        names = " and ".join(sorted(map(_package, found.values())))
        raise ConfigError(
            f"{without_password(url)}: {names} all offer a store for {scheme}://; uninstall all but one"
        )
    (point,) = found.values()
    try:
        make = point.load()
    except Exception as error:  # a plug-in may fail in any way while it is imported
        raise ConfigError(
            f"{without_password(url)}: the store plug-in {_package(point)} cannot be loaded "
            f"({type(error).__name__}: {error}); repair or uninstall it"
        ) from error
    if not callable(make):
        raise ConfigError(
            f"{without_password(url)}: the store plug-in {_package(point)} is of type {type(make).__name__}; "
            "its entry point must name a callable that takes a URL and returns a store"
        )
    return cast(Callable[[str], Store], make)


def _package(point: EntryPoint) -> str:
    name = point.dist.name if point.dist is not None else "of an unknown package"
    return f"{name} ({point.value})"


def _known() -> str:
    others = sorted(point.name + "://" for point in entry_points(group=PLUG_INS) if point.name not in STORES)
    return f"{KNOWN}, and from plug-ins {', '.join(others)}" if others else KNOWN


def _nearest(scheme: str) -> str:
    close = get_close_matches(scheme.partition("+")[0], STORES, n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else ""
