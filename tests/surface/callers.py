"""Open transactions of callers whose libraries work alike on both stores, in the words of each library."""

from __future__ import annotations

from typing import Any

import django
import django.conf
from django.db.utils import ConnectionHandler


class CursorCaller:
    """A library whose statements go through a cursor; ``passed``: rota gets the cursor itself."""

    def __init__(self, connection: Any, passed: bool) -> None:
        self._cursor = connection.cursor()
        self._connection = connection
        self.connection = self._cursor if passed else connection

    async def execute(self, sql: str) -> None:
        self._cursor.execute(sql)

    async def end(self, commit: bool) -> None:
        self._connection.commit() if commit else self._connection.rollback()


class PeeweeCaller:
    def __init__(self, database: Any, transaction: Any) -> None:
        self.connection = database
        self._transaction = transaction

    async def execute(self, sql: str) -> None:
        self.connection.execute_sql(sql)

    async def end(self, commit: bool) -> None:
        self._transaction.commit() if commit else self._transaction.rollback()  # and begins another


def django_connection(**database: str) -> Any:
    """Django's connection to a database, with a transaction that the caller ends."""
    if not django.conf.settings.configured:
        django.conf.settings.configure()
        django.setup()
    connection = ConnectionHandler({"default": database})["default"]
    connection.set_autocommit(False)
    return connection
