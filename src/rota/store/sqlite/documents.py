"""Small versioned documents."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ...model import Document
from .rows import document
from .statements import statement
from .writer import Transaction


def write_document(transaction: Transaction, kind: str, key: str, body: str, now: int) -> int:
    """Write whatever the version is; the new version."""
    rows = transaction.execute(statement("put_document"), (kind, key, body, now)).fetchall()
    return int(rows[0][0])


def put(
    transaction: Transaction, kind: str, key: str, body: str, expected: int | None, now: int
) -> int | None:
    """Write if the version is the expected one (0: absent); None if it is not."""
    if expected is not None:
        row = transaction.execute(statement("document_version"), (kind, key)).fetchone()
        if (row[0] if row else 0) != expected:
            return None
    return write_document(transaction, kind, key, body, now)


def find(connection: sqlite3.Connection, kind: str, key: str | None) -> Sequence[Document]:
    if key is None:
        rows = connection.execute(statement("documents"), (kind,))
    else:
        rows = connection.execute(statement("document"), (kind, key))
    return [document(row) for row in rows]


def delete(transaction: Transaction, kind: str, key: str) -> bool:
    return transaction.execute(statement("drop_document"), (kind, key)).rowcount > 0
