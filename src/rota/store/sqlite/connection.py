"""Opening the file: its settings, and the messages for what can go wrong with it.

Must never hold policy about jobs. Every ``sqlite3`` error leaves this package through ``translated``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from threading import Event
from typing import TypeVar

from ...errors import ConfigError, RotaError, SchemaMismatch, StoreError, StoreUnavailable
from .url import SqliteUrl

T = TypeVar("T")

BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# After these the connection itself is suspect and the next call makes a new one.
BROKEN = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN)

_never = Event()


def connect(address: SqliteUrl) -> sqlite3.Connection:
    """A connection in autocommit mode, usable from any one thread at a time."""
    if address.path is not None:
        _create(address.path)
    try:
        connection = sqlite3.connect(
            address.path or ":memory:",
            timeout=0,  # waiting is ours: SQLite's own sleeps up to 100 ms between looks
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        try:
            patiently(lambda: _configure(connection, address), address.patience_s)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise translated(error, address) from error
    return connection


def _create(path: str) -> None:
    """Make the file readable by its owner only; the ``-wal`` and ``-shm`` files inherit this."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise ConfigError(f"{path}: the directory {folder} does not exist; create it or correct the URL")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if os.path.isdir(path):
            raise ConfigError(f"{path} is a directory; name a database file in the URL") from None
        if not os.access(path, os.R_OK | os.W_OK):
            raise StoreUnavailable(
                f"{path} cannot be read and written by this user; correct its owner or mode",
                is_temporary=False,
            ) from None
    except OSError as error:
        message = f"{path} cannot be created: {error.strerror}"
        raise StoreUnavailable(message, is_temporary=False) from error


def _configure(connection: sqlite3.Connection, address: SqliteUrl) -> None:
    if address.path is not None:
        _use_wal(connection, address.path)
    for setting in (
        f"synchronous = {address.synchronous}",
        "temp_store = memory",
        "cache_size = -16000",
        "journal_size_limit = 67108864",
        # With tenants a claim changes hundreds of pages, mostly the same again: copy them back less often.
        "wal_autocheckpoint = 4000",
    ):
        connection.execute(f"PRAGMA {setting}")


def _use_wal(connection: sqlite3.Connection, path: str) -> None:
    if _pragma(connection, "journal_mode") == "wal":
        return
    mode = _pragma(connection, "journal_mode = wal")
    if mode != "wal":
        raise StoreUnavailable(
            f"{path} stays in journal mode {mode!r}, but rota needs write-ahead logging: put the file on "
            "a local disk that is not mounted read-only",
            is_temporary=False,
        )


def _pragma(connection: sqlite3.Connection, text: str) -> object:
    row = connection.execute(f"PRAGMA {text}").fetchone()
    return row[0] if row else None


def patiently(act: Callable[[], T], patience_s: float) -> T:
    """Do it, again and again while another process holds the lock."""
    waited, pause = 0.0, 0.0005 * (1 + os.getpid() % 8 / 8)  # processes must not step in time
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if _code(error) not in BUSY or waited >= patience_s:
                raise
        _never.wait(pause)
        waited += pause
        pause = min(pause * 1.3, 0.005)


def rollback(connection: sqlite3.Connection) -> None:
    """SQLite has already rolled back after some errors; another one must not hide the first."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        connection.close()


# --- errors --------------------------------------------------------------------------------------

REMEDIES = {
    sqlite3.SQLITE_FULL: "free some disk space; nothing was stored by this call",
    sqlite3.SQLITE_BUSY: "another connection holds the write lock; end its transaction",
    sqlite3.SQLITE_LOCKED: "another connection holds the lock; end its transaction",
    sqlite3.SQLITE_READONLY: "the file or its directory is read-only; correct the owner or mode",
    sqlite3.SQLITE_CANTOPEN: "check that the file and its directory exist and are writable",
    sqlite3.SQLITE_PERM: "correct the owner or mode of the file",
    sqlite3.SQLITE_IOERR: "check the disk and the mount; the call may be tried again",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; run `PRAGMA integrity_check` and restore a backup",
}


def translated(error: Exception, address: SqliteUrl) -> Exception:
    """The error in rota's words: the file, the cause, the remedy.

    None is temporary: locks have been waited for, and the others do not pass by themselves.
    """
    if isinstance(error, RotaError) or not isinstance(error, sqlite3.Error | sqlite3.Warning):
        return error
    where, code = address.path or address.url, _code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return ConfigError(f"{where} is not an SQLite database ({error}); name another file in the URL")
    if "no such table: rota_" in str(error):
        return SchemaMismatch(f"{where} has lost its rota schema ({error}): run `rota migrate`")
    if code in REMEDIES:
        return StoreUnavailable(f"{where}: {error}: {REMEDIES[code]}", is_temporary=False)
    if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
        return StoreUnavailable(f"{where}: {error}; the call may be tried again", is_temporary=False)
    return StoreError(f"{where}: {error}")


def is_broken(error: Exception) -> bool:
    return isinstance(error, sqlite3.Error) and (_code(error) in BROKEN or "no such table" in str(error))


def is_undecodable(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "Could not decode" in str(error)


def decode_anything(connection: sqlite3.Connection) -> None:
    """Text that is not UTF-8 was written by someone else; show it rather than fail."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")


def _code(error: BaseException) -> int:
    """The primary result code; Python's own errors of this kind carry none."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
