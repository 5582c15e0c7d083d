"""The audit log: entries are added, read and sealed, and deleted only by age. Must never change one.

Only one transaction writes at a time, so each id can be made from the last one: ids grow in the
order of adding, whichever processes add. They have the form of UUIDv7, with the time of the line or,
if that is behind the line before, of that one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

from msgspec.structs import asdict

from ...model import AuditChain, AuditEntry, AuditFilter, AuditSeal, Page, PageRequest
from .. import cursors
from .rows import EPOCH, Row, as_json, micros, readable_instant
from .statements import AUDIT, SEAL, statement
from .writer import Transaction

# A filter on one of these reads the lines in order from an index of its own; the first given counts.
INDEXED = ("object", "actor", "tenant")
_SEALS = f"SELECT {', '.join(SEAL)} FROM rota_audit_seals"
SHAPE = 0x7000_8000000000000000  # what makes a number a UUIDv7, below its 48 bits of milliseconds


def append(transaction: Transaction, entries: Sequence[AuditEntry]) -> None:
    last = transaction.execute(statement("last_audit")).fetchone()[0]
    transaction.executemany(statement("append_audit"), rows_after(last, entries))


def rows_after(last_id: object, entries: Sequence[AuditEntry]) -> list[Row]:
    """The rows of new entries, with ids that follow the last one."""
    last = _number(last_id)
    rows: list[Row] = []
    for entry in entries:
        last = max(last + 1, _first_of(micros(entry.at)))
        cells = asdict(entry) | {"id": str(UUID(int=last)), "at": micros(entry.at)}
        rows.append(tuple(cells[column] for column in AUDIT))
    return rows


def _number(id: object) -> int:
    try:
        return UUID(str(id)).int
    except ValueError:  # there is no line yet, or someone wrote one by hand: begin with the time
        return 0


def _first_of(at: int) -> int:
    """The smallest id of a millisecond, as a number."""
    return (max(at // 1000, 0) << 80) | SHAPE


def audit(connection: sqlite3.Connection, where: AuditFilter, page: PageRequest) -> Page[AuditEntry]:
    """By id; the cursor is the last id seen."""
    text, params = matching(where)
    order, beyond = cursors.by_id(page)
    if page.cursor is not None:
        text += f" AND id {beyond} ?"
        params.append(page.cursor)
    query = f"SELECT {', '.join(AUDIT)} {text} ORDER BY id {order} LIMIT ?"
    rows = connection.execute(query, (*params, page.limit + 1)).fetchall()
    return cursors.page(rows, page.limit, _entry, itemgetter(AUDIT.index("id")))


def _entry(row: Row) -> AuditEntry:
    """Never fails: a line written by hand must not hide the others."""
    cells = dict(zip(AUDIT, row, strict=True))
    at = readable_instant(cells.pop("at")) or EPOCH
    texts: dict[str, Any] = {name: None if cell is None else str(cell) for name, cell in cells.items()}
    return AuditEntry(at=at, **texts)


def matching(where: AuditFilter) -> tuple[str, list[Any]]:
    """``FROM … WHERE …`` with its parameters."""
    terms: list[str] = ["id >= ?"]
    params: list[Any] = [_since(where.since_at)]
    for column in (*INDEXED, "result"):
        if (value := getattr(where, column)) is not None:
            terms.append(f"{column} = ?")
            params.append(value)
    if where.action is not None:
        beginning = f"substr(action, 1, {len(where.action)})"
        terms.append(f"{beginning if where.action.endswith('.') else 'action'} = ?")
        params.append(where.action)
    for sign, bound in ((">=", where.since_at), ("<", where.until_at)):
        if bound is not None:
            terms.append(f"at {sign} ?")
            params.append(micros(bound))
    index = next((name for name in INDEXED if getattr(where, name) is not None), "id")
    if where.seal is not None:
        index = "seal" if where.seal else "unsealed"
        terms.append("seal = ?" if where.seal else "seal IS NULL")
        params += [where.seal] if where.seal else []
    return f"FROM rota_audit INDEXED BY rota_audit_{index} WHERE {' AND '.join(terms)}", params


def _since(at: datetime | None) -> str:
    """No line of that time or later has a smaller id."""
    return "" if at is None else str(UUID(int=_first_of(micros(at))))


def seal(transaction: Transaction, made: AuditSeal, ids: Sequence[str]) -> bool:
    if (transaction.execute(statement("last_seal")).fetchone()[0] or 0) != made.number - 1:
        return False
    transaction.execute("SAVEPOINT seal")
    changed = transaction.execute(statement("seal_audit"), (made.number, as_json(ids))).rowcount
    if changed != len(ids):  # gone, or sealed by another
        transaction.execute("ROLLBACK TO seal")
    else:
        cells = asdict(made) | {name: micros(getattr(made, name)) for name in ("last_at", "sealed_at")}
        transaction.execute(statement("add_seal"), tuple(cells[column] for column in SEAL))
    transaction.execute("RELEASE seal")
    return changed == len(ids)


def seals(connection: sqlite3.Connection, after: int, limit: int) -> list[AuditSeal]:
    rows = connection.execute(f"{_SEALS} WHERE number > ? ORDER BY number LIMIT ?", (after, limit))
    return [_seal(row) for row in rows]


def chain(connection: sqlite3.Connection, most: int) -> AuditChain:
    base = connection.execute(f"{_SEALS} ORDER BY number LIMIT 1").fetchone()
    head = connection.execute(f"{_SEALS} ORDER BY number DESC LIMIT 1").fetchone()
    unsealed, oldest = connection.execute(statement("unsealed"), (most,)).fetchone()
    (stray,) = connection.execute(statement("stray_seal")).fetchone()
    return AuditChain(
        base=base and _seal(base),
        head=head and _seal(head),
        unsealed=unsealed,
        oldest_unsealed_at=readable_instant(oldest),
        stray=stray,
    )


def _seal(row: Row) -> AuditSeal:
    cells = dict(zip(SEAL, row, strict=True))
    times: dict[str, Any] = {
        name: readable_instant(cells.pop(name)) for name in ("last_at", "sealed_at", "pruned_at")
    }
    return AuditSeal(**cells, **times)


def prune(transaction: Transaction, before: datetime, limit: int, now: datetime) -> int:
    """In whole batches that are sealed, about ``limit``; the last of their seals stays."""
    last, total = None, 0
    for number, entries, at in transaction.execute(statement("prunable_seals")):
        total += entries
        if at >= micros(before) or (last is not None and total > limit):
            break
        last = number
    if last is None:
        return 0
    transaction.execute(statement("mark_pruned"), (micros(now), last))
    gone = transaction.execute(statement("prune_audit"), (last,)).rowcount
    transaction.execute(statement("drop_seals"), (last,))
    return gone
