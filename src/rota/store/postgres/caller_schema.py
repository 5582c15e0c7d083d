"""Rota's schema as a caller's own connection finds it: there, or reported with the remedy.

PostgreSQL ends a transaction at its first failed statement, and a missing function is such a failure. So
the first call of a program asks whether the function is there, which fails nothing; later calls do not ask
again. Must never do more to the caller's transaction than that.
"""

from __future__ import annotations

from typing import TypeVar

from ...errors import SchemaMismatch
from ..sql.external import Script, sqlstate

R = TypeVar("R")

_IS_THERE = "SELECT to_regprocedure(?) IS NOT NULL"
# Undefined function, table, column, schema.
_MISSING = frozenset({"42883", "42P01", "42703", "3F000"})


class CallerSchema:
    """What one store knows of the databases that its callers' connections lead to."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._seen: set[str] = set()

    def check(self, function: str, script: Script[R]) -> Script[R]:
        """The script, which calls the function (named with the types it takes); SchemaMismatch without it."""
        if function not in self._seen:
            rows = yield _IS_THERE, (function,)
            if not rows[0][0]:
                raise self._mismatch("your transaction is as it was")
        try:
            result = yield from script
        except Exception as error:
            if sqlstate(error) not in _MISSING:
                raise
            raise self._mismatch("roll your transaction back") from error
        self._seen.add(function)
        return result

    def _mismatch(self, transaction: str) -> SchemaMismatch:
        return SchemaMismatch(
            "connection= leads to a database without rota's schema, or with an older version of it: connect "
            f"it to {self._where}, and run `rota migrate`; {transaction}"
        )
