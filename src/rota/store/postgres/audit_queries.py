"""The audit log: adding, reading, sealing, deleting by age.

Owns the SQL of an AuditFilter. Must never change an entry: the table itself rejects that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ...model import AuditChain, AuditEntry, AuditFilter, AuditSeal, Page, PageRequest
from .. import cursors
from .connections import Connections
from .rows import Row, audit_lines, text

FIELDS = AuditEntry.__struct_fields__
COLUMNS = ", ".join(name.removesuffix("_json") for name in FIELDS)
LONGEST_ID = 18  # digits that surely fit into a bigint

_APPEND = "SELECT rota.append_audit(CAST(%s AS json))"
_PRUNE = "SELECT rota.prune_audit(%s, %s)"
_SEAL = "SELECT rota.seal_audit(CAST(%s AS json), CAST(%s AS bigint[]))"
_SEAL_COLUMNS = ", ".join(AuditSeal.__struct_fields__)
_SEALS = f"SELECT {_SEAL_COLUMNS} FROM rota.audit_seals"
_UNSEALED = """
SELECT count(*), min(at) FROM (SELECT at FROM rota.audit WHERE seal IS NULL ORDER BY id LIMIT %s) AS unsealed
"""
_STRAY = """
SELECT least(
    (SELECT min(seal) FROM rota.audit WHERE seal < coalesce(
        (SELECT min(number) FROM rota.audit_seals WHERE pruned_at IS NULL),
        (SELECT max(number) + 1 FROM rota.audit_seals), 1)),
    (SELECT min(seal) FROM rota.audit WHERE seal > coalesce((SELECT max(number) FROM rota.audit_seals), 0)))
"""


async def append(connections: Connections, entries: Sequence[AuditEntry]) -> None:
    if entries:
        await connections.rows(_APPEND, (text(audit_lines(entries)),), repeatable=False)


async def prune(connections: Connections, before: datetime, limit: int) -> int:
    ((gone,),) = await connections.rows(_PRUNE, (before, limit), patience="retention")
    return int(gone)


async def seal(connections: Connections, made: AuditSeal, ids: Sequence[str]) -> bool:
    wire = text(msgspec.structs.asdict(made))
    ((done,),) = await connections.rows(_SEAL, (wire, [int(id) for id in ids]), repeatable=False)
    return bool(done)


async def seals(connections: Connections, after: int, limit: int) -> list[AuditSeal]:
    rows = await connections.rows(f"{_SEALS} WHERE number > %s ORDER BY number LIMIT %s", (after, limit))
    return [_seal(row) for row in rows]


async def chain(connections: Connections, most: int) -> AuditChain:
    async with connections.snapshot() as fetch:
        base = await fetch(f"{_SEALS} ORDER BY number LIMIT 1")
        head = await fetch(f"{_SEALS} ORDER BY number DESC LIMIT 1")
        ((unsealed, oldest),) = await fetch(_UNSEALED, (most,))
        ((stray,),) = await fetch(_STRAY)
    return AuditChain(
        base=_seal(base[0]) if base else None,
        head=_seal(head[0]) if head else None,
        unsealed=unsealed,
        oldest_unsealed_at=oldest,
        stray=stray,
    )


def _seal(row: Row) -> AuditSeal:
    return AuditSeal(**dict(zip(AuditSeal.__struct_fields__, row, strict=True)))


def page_statement(where: AuditFilter, ask: PageRequest) -> tuple[str, list[Any]]:
    """One row more than asked for, to know whether there is a next page."""
    clauses: list[str] = ["true"]
    params: list[Any] = []

    def add(clause: str, value: Any) -> None:
        clauses.append(clause)
        params.append(value)

    for name in ("actor", "object", "tenant", "result"):
        if (value := getattr(where, name)) is not None:
            add(f"{name} = %s", value)
    if where.action is not None:
        add("action ^@ %s" if where.action.endswith(".") else "action = %s", where.action)
    if where.since_at is not None:
        add("at >= %s", where.since_at)
    if where.until_at is not None:
        add("at < %s", where.until_at)
    if where.seal is not None:
        add("seal = %s", where.seal) if where.seal else clauses.append("seal IS NULL")
    order, beyond = cursors.by_id(ask)
    if (place := _place(ask.cursor)) is not None:
        add(f"id {beyond} %s", place)
    condition = " AND ".join(clauses)
    statement = f"SELECT {COLUMNS} FROM rota.audit WHERE {condition} ORDER BY id {order} LIMIT %s"
    return statement, [*params, ask.limit + 1]


async def page(connections: Connections, where: AuditFilter, ask: PageRequest) -> Page[AuditEntry]:
    rows = await connections.rows(*page_statement(where, ask))
    return cursors.page(rows, ask.limit, entry, lambda row: entry(row).id)


def _place(cursor: str | None) -> int | None:
    """Where a page begins; a text that is no cursor of ours means the first page."""
    if cursor is None or not cursor.isascii() or not cursor.isdigit() or len(cursor) > LONGEST_ID:
        return None
    return int(cursor)


def entry(row: Row) -> AuditEntry:
    """Every column has a type, so every row can be read."""
    values = dict(zip(FIELDS, row, strict=True))
    values["id"] = f"{values['id']:016d}"  # all equally wide, so that the texts grow like the numbers
    return AuditEntry(**values)
