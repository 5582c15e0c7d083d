"""What a file has of rota's schema, compared with what it should have, and how to repair it.

Owns the table ``rota_migrations``. What counts is what is really in the file: the columns of tables, and
the text of indexes and triggers, which are code and are made again when they differ. What they should be
is asked of SQLite itself, with a database in memory. Must never change a table by itself.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from importlib.resources import files

from ..sql.migrations import Applied, column_differences, damaged, discover, pending
from .connection import patiently, rollback, translated
from .statements import fill
from .url import SqliteUrl

PREAMBLE = files(__package__).joinpath("schema.sql").read_text("utf-8")
MIGRATIONS = discover(__package__, "rota_migrations", fill)
START_AGAIN = "name another file in the URL, or delete the tables rota_* with all their jobs"

_TABLES = re.findall(r"CREATE TABLE (\w+)", PREAMBLE + "".join(migration.sql for migration in MIGRATIONS))
# Everything of ours: tables with their columns, indexes and triggers on them with their text. What others
# have in the file is theirs, whatever its name.
_FACTS = f"""
SELECT type, name, CASE type WHEN 'table' THEN (
    SELECT group_concat(x.name || ' ' || x.type || iif(x."notnull", ' NOT NULL', ''), ', ')
    FROM pragma_table_xinfo(m.name) AS x
  ) ELSE sql END
FROM sqlite_master AS m
WHERE substr(name, 1, 5) = 'rota_' AND sql IS NOT NULL AND type IN ('table', 'index', 'trigger')
  AND tbl_name IN ({", ".join(map(repr, _TABLES))})
"""

Thing = tuple[str, str]  # type and name
Facts = dict[Thing, str]


def lacking(connection: sqlite3.Connection, where: str) -> list[str]:
    """What ``migrate`` would change; SchemaMismatch if it cannot help."""
    there = _facts(connection)
    missing = pending(MIGRATIONS, _applied(connection, there), where, START_AGAIN)
    if missing:
        return [migration.name for migration in missing]
    _check_tables(there, where)
    return [f"{kind} {name} {_fault(thing, there)}" for thing in _wrong(there) for kind, name in [thing]]


def migrate(connection: sqlite3.Connection, address: SqliteUrl) -> Sequence[str]:
    """Bring the file up to date. It is read again under the lock, so any number may try at once."""
    where = address.path or address.url
    try:
        if not patiently(lambda: lacking(connection, where), address.patience_s):
            return ()
        patiently(lambda: connection.execute("BEGIN IMMEDIATE"), address.patience_s)
        try:
            done = lacking(connection, where)
            _repair(connection, where)
            connection.execute("COMMIT")
        except BaseException:
            rollback(connection)
            raise
    except sqlite3.Error as error:
        raise translated(error, address) from error
    return done


def start_again(connection: sqlite3.Connection, where: str) -> None:
    """Drop every table of ours and make it again, inside the caller's transaction."""
    for table in _TABLES:
        connection.execute(f'DROP TABLE IF EXISTS "{table}"')
    _repair(connection, where)


def as_text() -> str:
    """Everything, as a script for an empty file."""
    return "\n".join([PREAMBLE, *(f"-- {migration.name}\n{migration.sql}" for migration in MIGRATIONS)])


def names() -> list[str]:
    """What a new file lacks."""
    return [migration.name for migration in MIGRATIONS]


# --- inside --------------------------------------------------------------------------------------


def _repair(connection: sqlite3.Connection, where: str) -> None:
    there = _facts(connection)
    if ("table", "rota_migrations") not in there:
        _run(connection, PREAMBLE)
    for migration in pending(MIGRATIONS, _applied(connection, there), where, START_AGAIN):
        _run(connection, migration.sql)
    for kind, name in _wrong(_facts(connection)):
        connection.execute(f'DROP {kind} IF EXISTS "{name}"')
        if (kind, name) in _expected():
            connection.execute(_expected()[kind, name])


def _applied(connection: sqlite3.Connection, there: Facts) -> Applied:
    if ("table", "rota_migrations") not in there:
        return ()
    return connection.execute("SELECT version, name FROM rota_migrations ORDER BY version").fetchall()


def _facts(connection: sqlite3.Connection) -> Facts:
    return {(kind, name): fact for kind, name, fact in connection.execute(_FACTS)}


@cache
def _expected() -> Facts:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(as_text())
        return _facts(connection)


def _check_tables(there: Facts, where: str) -> None:
    wrong = [
        column_differences(name, there.get((kind, name)), columns)
        for (kind, name), columns in _expected().items()
        if kind == "table" and there.get((kind, name)) != columns
    ]
    if wrong:
        raise damaged(where, wrong, START_AGAIN)


def _wrong(there: Facts) -> list[Thing]:
    """Indexes and triggers that are missing, differ or are left over."""
    things = sorted(there.keys() | _expected().keys())
    return [one for one in things if one[0] != "table" and there.get(one) != _expected().get(one)]


def _fault(thing: Thing, there: Facts) -> str:
    if thing not in there:
        return "is missing"
    return "differs" if thing in _expected() else "is left over"


def _run(connection: sqlite3.Connection, script: str) -> None:
    """``executescript`` would commit before it begins."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            connection.execute(text)
            text = ""
