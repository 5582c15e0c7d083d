"""The version of rota's schema in a database, and how to raise it.

Owns the table ``rota.migrations``. Must never run two migrations at once: a lock that lives only as
long as its transaction makes every other process wait, then find the work done.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from ..sql.migrations import Migration, as_text, discover, pending, require_current
from .connections import Connection, Connections
from .driver_errors import translated

MIGRATIONS = discover(__package__)
LOCK = 7_466_561  # any constant will do, as long as it is ours

_EXISTS = "SELECT to_regclass('rota.migrations') IS NOT NULL"
_VERSION = "SELECT coalesce(max(version), 0) FROM rota.migrations"


class PostgresSchema:
    """The schema ``rota`` of one database."""

    def __init__(self, connections: Connections, shown: str) -> None:
        self._connections = connections
        self._shown = shown

    @property
    def text(self) -> str:
        return as_text(MIGRATIONS)

    async def pending(self) -> Sequence[str]:
        return [one.name for one in pending(MIGRATIONS, await version(self._connections), self._shown)]

    async def migrate(self) -> Sequence[str]:
        return await migrate(self._connections, self._shown)

    async def require_current(self) -> None:
        require_current(MIGRATIONS, await version(self._connections), self._shown)


async def version(connections: Connections) -> int:
    """0 for a database without our schema."""
    ((exists,),) = await connections.rows(_EXISTS)
    if not exists:
        return 0
    ((found,),) = await connections.rows(_VERSION)
    return int(found)


async def migrate(connections: Connections, shown: str) -> Sequence[str]:
    """The names of the migrations applied by this call."""
    applied: list[str] = []
    try:
        async with connections.borrow() as connection:
            while (done := await _step(connection, shown)) is not None:
                applied.append(done.name)
    except psycopg.Error as error:
        raise translated(error, shown) from error
    return applied


async def _step(connection: Connection, shown: str) -> Migration | None:
    """Apply the next migration, if there is one, in a transaction of its own."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        missing = pending(MIGRATIONS, await _version(connection), shown)
        if not missing:
            return None
        await connection.execute(missing[0].sql.encode())
        return missing[0]


async def _version(connection: Connection) -> int:
    exists = await (await connection.execute(_EXISTS)).fetchone()
    if exists is None or not exists[0]:
        return 0
    found = await (await connection.execute(_VERSION)).fetchone()
    return 0 if found is None else int(found[0])
