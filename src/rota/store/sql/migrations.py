"""Numbered ``.sql`` files of a store package: which exist, which are missing, and what to say about it.

Owns the order of migrations and the words of a SchemaMismatch. Must never touch a database: the
store reads and writes the version, this module does the arithmetic.

A migration is a file ``NNNN_name.sql`` inside the store's package; numbers start at 1 and have no
gaps. A database is at version N when the files 1..N have been applied; version 0 is an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from ...errors import SchemaMismatch

_FILE = re.compile(r"(\d{4})_\w+\.sql")


class Migration(NamedTuple):
    version: int
    name: str  # the file's name without its suffix: ``0001_jobs``
    sql: str


def discover(package: str) -> tuple[Migration, ...]:
    """The migrations of a package such as ``rota.store.sqlite``, in order."""
    found = [
        Migration(version=int(match[1]), name=entry.name.removesuffix(".sql"), sql=entry.read_text("utf-8"))
        for entry in files(package).iterdir()
        if (match := _FILE.fullmatch(entry.name))
    ]
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        names = ", ".join(migration.name for migration in found)
        raise SchemaMismatch(f"the migrations of {package} are not numbered 1, 2, 3: {names}; reinstall rota")
    return tuple(found)


def latest(migrations: Sequence[Migration]) -> int:
    return migrations[-1].version if migrations else 0


def pending(migrations: Sequence[Migration], version: int, where: str) -> tuple[Migration, ...]:
    """What a database at ``version`` lacks; SchemaMismatch if it is newer than this program.

    ``where`` names the database in the message; it must hold no password.
    """
    if version > latest(migrations):
        raise SchemaMismatch(
            f"the schema of {where} is at version {version}, but this rota knows only version "
            f"{latest(migrations)}: a newer rota has migrated it; upgrade rota here"
        )
    return tuple(migration for migration in migrations if migration.version > version)


def require_current(migrations: Sequence[Migration], version: int, where: str) -> None:
    """SchemaMismatch unless the database is exactly where this program expects it."""
    if pending(migrations, version, where):
        state = "is missing (version 0)" if version == 0 else f"is at version {version}"
        raise SchemaMismatch(
            f"the schema of {where} {state}, but this rota needs version {latest(migrations)}: "
            "run `rota migrate`"
        )


def as_text(migrations: Sequence[Migration]) -> str:
    """All migrations as one text an administrator can review and run."""
    return "\n".join(f"-- {migration.name}\n{migration.sql.strip()}\n" for migration in migrations)
