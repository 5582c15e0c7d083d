"""The table versions of a store: which exist, which are missing, and what to say about it.

Owns the order of versions and the text of a SchemaMismatch. Must never touch a database: the store
reads and writes, this module compares.

A version is a file ``tables/NNNN_name.sql`` inside the store's package; numbers start at 1 and have no
gaps. A database lists the versions it has by number and name: a number alone could mean two things.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import NamedTuple

from ...errors import SchemaMismatch

_FILE = re.compile(r"(\d{4})_\w+\.sql")

Applied = Sequence[tuple[int, str]]  # versions and their names


class Migration(NamedTuple):
    version: int
    name: str  # the file's name without its suffix: ``0001_jobs``
    sql: str


def discover(package: str, table: str, fill: Callable[[str], str]) -> tuple[Migration, ...]:
    """The versions of a package such as ``rota.store.sqlite``, in order.

    ``fill`` renders a file; each one ends by noting itself in ``table``.
    """
    found = []
    for entry in sorted(files(package).joinpath("tables").iterdir(), key=lambda entry: entry.name):
        if match := _FILE.fullmatch(entry.name):
            name = entry.name.removesuffix(".sql")
            noted = f"INSERT INTO {table} (version, name) VALUES ({int(match[1])}, '{name}');\n"
            found.append(Migration(int(match[1]), name, f"{fill(entry.read_text('utf-8'))}\n{noted}"))
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        names = ", ".join(migration.name for migration in found)
        raise SchemaMismatch(f"the tables of {package} are not numbered 1, 2, 3: {names}; reinstall rota")
    return tuple(found)


def pending(
    migrations: Sequence[Migration], applied: Applied, where: str, start_again: str
) -> tuple[Migration, ...]:
    """What a database lacks; SchemaMismatch if it is newer than this program, or of another line.

    ``where`` names the database in the message; it must hold no password. ``start_again`` says how to
    remove a schema that no version of rota can bring up to date.
    """
    for (version, name), known in zip(applied, migrations, strict=False):
        if (version, name) != known[:2]:
            raise SchemaMismatch(
                f"the tables of {where} were made by a development version of rota: version {version} is "
                f"{name}, but here it is {known.name}. They cannot be migrated: {start_again}, then run "
                "`rota migrate`"
            )
    if len(applied) > len(migrations):
        version, name = applied[-1]
        raise SchemaMismatch(
            f"the schema of {where} is at version {version} ({name}), but this rota knows only version "
            f"{len(migrations)}: a newer rota has migrated it; upgrade rota here"
        )
    return tuple(migrations[len(applied) :])


def not_there(where: str) -> SchemaMismatch:
    """No version of rota has been here."""
    return SchemaMismatch(f"{where} does not have rota's tables yet: run `rota migrate`")


def out_of_date(where: str, differences: Sequence[str]) -> SchemaMismatch:
    """The database lacks what ``rota migrate`` would add or repair."""
    shown = ", ".join(differences[:5]) + (f" and {len(differences) - 5} more" if len(differences) > 5 else "")
    return SchemaMismatch(f"the schema of {where} is out of date ({shown}): run `rota migrate`")


def column_differences(table: str, found: str | None, expected: str) -> str:
    """How the columns of a table differ, each list as text: ``id uuid, queue text``."""
    if found is None:
        return f"{table} is missing"
    has, needs = found.split(", "), expected.split(", ")
    extra, lacking = [one for one in has if one not in needs], [one for one in needs if one not in has]
    parts = [
        f"{verb} {', '.join(columns)}" for verb, columns in (("lacks", lacking), ("has", extra)) if columns
    ]
    return f"{table} {' and '.join(parts) or 'has its columns in another order'}"


def damaged(where: str, differences: Sequence[str], start_again: str) -> SchemaMismatch:
    """Tables differ from what their version says: nothing that could be repaired without a loss."""
    return SchemaMismatch(
        f"the tables of {where} are not those of this rota: {'; '.join(differences)}. They were changed by "
        f"hand or made by a development version. Undo the change, or {start_again}, then run `rota migrate`"
    )
