"""What can be asked of an SQLite file about its health, and what to do about it. Must never write.

Each check looks at one thing and says how it is. What may not be seen is said, not raised.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
from collections.abc import Callable, Sequence

from ...errors import RotaError
from ...model import Finding
from ..protocol import StoreSchema
from .rules import check_rules
from .url import SqliteUrl

MB = 1024 * 1024
CHECKED_MB = 256  # reading more of the file would hold up the readers for seconds
LOG_MB = 256
BLOAT_MB = 64  # less is not worth a VACUUM
DAMAGED = "stop rota, run `PRAGMA integrity_check` and restore a backup"
OTHERS = stat.S_IRWXG | stat.S_IRWXO

Check = Callable[[sqlite3.Connection, SqliteUrl], Finding]


def _fine(check: str, text: str, remedy: str | None = None) -> Finding:
    return Finding(check=check, level="ok", text=text, remedy=remedy)


def _warning(check: str, text: str, remedy: str | None) -> Finding:
    return Finding(check=check, level="warning", text=text, remedy=remedy)


def _problem(check: str, text: str, remedy: str | None) -> Finding:
    return Finding(check=check, level="problem", text=text, remedy=remedy)


async def check_schema(schema: StoreSchema) -> Finding:
    try:
        lacking = await schema.pending()
    except RotaError as error:
        return _problem("schema", str(error), None)  # the message holds its remedy
    if lacking:
        text = f"migrations not yet applied: {', '.join(lacking)}"
        return _problem("schema", text, "run `rota migrate`")
    return _fine("schema", "up to date")


def unreachable(error: RotaError) -> Finding:
    return _problem("database", str(error), None)  # the message holds its remedy


def check_health(connection: sqlite3.Connection, address: SqliteUrl) -> Sequence[Finding]:
    checks: Sequence[Check] = (_version, _durability_in_memory, _integrity)
    if address.path is not None:
        checks = (_version, _journal, _durability, _permissions, _log, _bloat, _integrity)
    return [*(_attempt(check, connection, address) for check in checks), *_rules(connection)]


def _attempt(check: Check, connection: sqlite3.Connection, address: SqliteUrl) -> Finding:
    try:
        return check(connection, address)
    except OSError as error:
        return _warning(check.__name__.strip("_"), f"cannot be looked at: {error}", None)
    except sqlite3.Error as error:
        return _problem(check.__name__.strip("_"), f"cannot be read: {error}", DAMAGED)


def _rules(connection: sqlite3.Connection) -> Sequence[Finding]:
    try:
        return check_rules(connection)
    except sqlite3.Error as error:
        return [_problem("rules", f"cannot be read: {error}", DAMAGED)]


def _version(connection: sqlite3.Connection, address: SqliteUrl) -> Finding:
    return _fine("version", f"SQLite {sqlite3.sqlite_version}")


def _durability_in_memory(connection: sqlite3.Connection, address: SqliteUrl) -> Finding:
    text = "jobs live in the memory of this process and end with it"
    return _warning("durability", text, "name a file in the URL of the store")


def _journal(connection: sqlite3.Connection, address: SqliteUrl) -> Finding:
    """A file that cannot have a write-ahead log is refused when it is opened."""
    return _fine("journal", f"journal mode {_pragma(connection, 'journal_mode')}")


def _durability(connection: sqlite3.Connection, address: SqliteUrl) -> Finding:
    if address.synchronous == "full":
        return _fine("durability", "commits wait for the disk")
    text = "synchronous=normal: a power cut may undo the last commits"
    remedy = "leave synchronous=normal out of the URL unless jobs may be lost"
    return _warning("durability", text, remedy)


def _permissions(connection: sqlite3.Connection, address: SqliteUrl) -> Finding:
    path = address.path or ""
    files = [name for name in (path, f"{path}-wal", f"{path}-shm") if os.path.exists(name)]
    open_to_others = [name for name in files if os.stat(name).st_mode & OTHERS]
    if open_to_others and os.name == "posix":
        text = f"other users of this machine may open {', '.join(open_to_others)}"
        return _warning("permissions", text, f"run `chmod 600 {shlex.join(open_to_others)}`")
    return _fine("permissions", "only its owner may open the file")


def _log(connection: sqlite3.Connection, address: SqliteUrl) -> Finding:
    path = f"{address.path}-wal"
    size = os.path.getsize(path) // MB if os.path.exists(path) else 0
    if size <= LOG_MB:
        return _fine("log", f"the write-ahead log holds {size} MB")
    text = f"the write-ahead log has grown to {size} MB: a transaction that stays open keeps it"
    remedy = "end programs that hold the file open in a transaction, then restart rota"
    return _warning("log", text, remedy)


def _bloat(connection: sqlite3.Connection, address: SqliteUrl) -> Finding:
    free, all_ = _pages_mb(connection, "freelist_count"), _pages_mb(connection, "page_count")
    text = f"{free} MB of {all_} MB in the file are empty"
    if free > BLOAT_MB and free > all_ / 2:
        remedy = "run `VACUUM` on the file at a quiet time; rota uses the space again if you do not"
        return _warning("bloat", text, remedy)
    return _fine("bloat", text)


def _integrity(connection: sqlite3.Connection, address: SqliteUrl) -> Finding:
    size = _pages_mb(connection, "page_count")
    if size > CHECKED_MB:
        text = f"not checked: the file has {size} MB, and more than {CHECKED_MB} MB would take too long"
        remedy = "run `PRAGMA quick_check` on a copy of the file"
        return _fine("integrity", text, remedy)
    if (answer := _pragma(connection, "quick_check(1)")) == "ok":
        return _fine("integrity", "the file is sound")
    return _problem("integrity", f"the file is damaged: {answer}", DAMAGED)


def _pages_mb(connection: sqlite3.Connection, which: str) -> int:
    return int(_pragma(connection, which)) * int(_pragma(connection, "page_size")) // MB


def _pragma(connection: sqlite3.Connection, text: str) -> str:
    return str(connection.execute(f"PRAGMA {text}").fetchone()[0])
