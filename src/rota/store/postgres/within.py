"""Schedules in the caller's own transaction, on PostgreSQL.

Drivers differ in what they make of a value, so everything but the simplest travels as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...model import AuditEntry, Document, Page, PageRequest, Schedule, ScheduleFilter
from ..sql.external import Script
from .rows import audit_lines, document, text

PUT = "rota.put_schedules(json,timestamptz)"  # to see whether the connection leads to our schema
_PUT = """
SELECT ord, version
  FROM rota.put_schedules(CAST(CAST(? AS text) AS json), CAST(CAST(? AS text) AS timestamptz))
"""
_FIND = """
SELECT CAST(to_jsonb(s) - 'payload' - 'declared' AS text), CAST(s.payload AS text), CAST(s.declared AS text)
  FROM rota.schedules AS s WHERE s.tenant = ? AND s.name = ?
"""
_DELETE = """
WITH gone AS (
    DELETE FROM rota.schedules WHERE id = ? RETURNING id, tenant, name
), counts AS (
    DELETE FROM rota.run_counts AS c USING gone AS g WHERE c.tenant = g.tenant AND c.schedule = g.name
)
SELECT id FROM gone
"""
_DOCUMENT = """
SELECT kind, key, version, updated_at, CAST(body AS text) FROM rota.documents WHERE kind = ? AND key = ?
"""
_MAY_READ = "SELECT has_table_privilege('rota.documents', 'SELECT')"
_AUDIT = "SELECT CAST(rota.append_audit(CAST(CAST(? AS text) AS json)) AS text)"
_NEVER = "infinity"  # how the table writes "not before it is edited"


class PostgresScripts:
    """Each a statement that every driver can send."""

    def schedules(self, where: ScheduleFilter, page: PageRequest) -> Script[Page[Schedule]]:
        """Only by tenant and name."""
        rows = yield _FIND, (where.tenant, where.name)
        return Page(items=[_schedule(*row) for row in rows])

    def put(self, schedules: Sequence[Schedule], now: datetime) -> Script[Sequence[int | None]]:
        rows = yield _PUT, (text(schedules), now.isoformat())
        return [version for _, version in sorted(rows, key=lambda row: int(row[0]))]

    def delete(self, ids: Sequence[str]) -> Script[Sequence[str]]:
        gone: list[str] = []
        for id in ids:
            gone += [row[0] for row in (yield _DELETE, (id,))]
        return gone

    def document(self, kind: str, key: str) -> Script[Sequence[Document]]:
        """None for a role that may not read them: a refusal would end the caller's transaction."""
        ((may_read,),) = yield _MAY_READ, ()
        rows = (yield _DOCUMENT, (kind, key)) if may_read else ()
        return [document(tuple(row)) for row in rows]

    def audit(self, entries: Sequence[AuditEntry]) -> Script[None]:
        yield _AUDIT, (text(audit_lines(entries)),)


def _schedule(cells: str, payload: str, declared: str | None) -> Schedule:
    values: dict[str, Any] = msgspec.json.decode(cells)
    if values["check_at"] == _NEVER:
        values["check_at"] = None
    found = msgspec.convert(values | {"payload_json": payload, "declared_json": declared}, Schedule)
    instants = {
        name: value.astimezone(UTC)
        for name in found.__struct_fields__
        if isinstance(value := getattr(found, name), datetime)
    }
    return msgspec.structs.replace(found, **instants, held=tuple(at.astimezone(UTC) for at in found.held))
