"""What a failure of the driver means to us.

Owns the translation of psycopg's errors. Must never let a password or a driver's type through.
"""

from __future__ import annotations

import psycopg
from psycopg import errors

from ...errors import RotaError, SchemaMismatch, StoreError, StoreUnavailable


class ResponseTimeout(psycopg.OperationalError):
    """The server was silent for too long; what it was asked may have been done, or may yet be."""

    @classmethod
    def after(cls, seconds: float) -> ResponseTimeout:
        return cls(f"no answer within {seconds:g} s")


# The statement was rolled back and may simply be run again.
TRANSIENT = (errors.DeadlockDetected, errors.SerializationFailure)
_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)
_NO_SCHEMA = (
    errors.UndefinedTable,
    errors.UndefinedFunction,
    errors.UndefinedColumn,
    errors.InvalidSchemaName,
)


def translated(error: psycopg.Error, where: str) -> RotaError:
    """The error to raise instead; its message names the store and the cause in one line."""
    cause = _one_line(error)
    if isinstance(error, _NO_SCHEMA):
        return SchemaMismatch(f"{where} lacks a part of rota's schema ({cause}): run `rota migrate`")
    if is_away(error):
        return StoreUnavailable(f"{where} is not available: {cause}")
    return StoreError(f"{where} refused: {cause}")


def is_away(error: BaseException) -> bool:
    """The server or the connection failed, not the statement."""
    return isinstance(error, _AWAY)


def is_data(error: BaseException | None) -> bool:
    """One of the values is at fault: others may be stored without it."""
    return isinstance(error, psycopg.DataError | psycopg.IntegrityError)


def _one_line(error: psycopg.Error) -> str:
    said = error.diag.message_primary or str(error)
    return " ".join(said.split()) or type(error).__name__
