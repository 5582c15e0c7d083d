"""The hosts of the shipped stores: how the crash rules reach them, kill them and take them away."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
)
from pathlib import Path
from typing import Any

import psycopg

from servers import Postgres

OPENER = "rota.store.open:open_store"


class SqliteHost:
    """A file that every process opens for itself: there is no server to kill."""

    def __init__(self, path: Path, factory: str = OPENER) -> None:
        self.url = f"sqlite:///{path}"
        self.factory = factory
        self._path = path

    def crash(self) -> bool:
        return False

    def outage(self) -> AbstractContextManager[None] | None:
        return None

    @asynccontextmanager
    async def transaction(self, *, commit: bool) -> AsyncIterator[Any]:
        with closing(sqlite3.connect(self._path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.commit() if commit else connection.rollback()


class PostgresHost:
    """A database on a server of the tests' own."""

    def __init__(self, server: Postgres, database: str) -> None:
        self.url = server.url(database)
        self.factory = OPENER
        self._server = server

    def crash(self) -> bool:
        self._server.crash()
        self._server.start()
        return True

    @contextmanager
    def outage(self) -> Iterator[None]:
        self._server.stop()
        try:
            yield
        finally:
            self._server.start()

    @asynccontextmanager
    async def transaction(self, *, commit: bool) -> AsyncIterator[Any]:
        async with await psycopg.AsyncConnection.connect(self.url) as connection:
            yield connection
            await (connection.commit() if commit else connection.rollback())
