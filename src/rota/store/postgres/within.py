"""Schedules in the caller's own transaction, on PostgreSQL.

Drivers differ in what they make of a value, so everything but the simplest travels as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...model import (
    AuditEntry,
    Document,
    LimitRule,
    Page,
    PageRequest,
    Schedule,
    ScheduleFilter,
    TenantRule,
    TenantUse,
)
from ..sql.external import Script
from ..sql.rules import LimitRow, limit_rule, tenant_fault
from .rows import audit_lines, document, text
from .rules import WAITING_BY_DEFAULT

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
_MAY_READ_LIMITS = "SELECT has_table_privilege('rota.limits', 'SELECT')"
_LIMITS = """
SELECT CAST(to_jsonb(l) || jsonb_build_object('declared', CAST(l.declared AS text),
                                              'chosen', CAST(l.chosen AS text)) AS text)
  FROM rota.limits AS l
 WHERE l.name IN (SELECT jsonb_array_elements_text(CAST(CAST(? AS text) AS jsonb)))
"""
_MAY_READ_TENANTS = """
SELECT has_table_privilege('rota.tenants', 'SELECT') AND has_table_privilege('rota.queued', 'SELECT')
"""
_TENANTS = "SELECT CAST(to_jsonb(t) AS text) FROM rota.tenants AS t"
_WAITING_BY_DEFAULT = f"count(*) FROM {WAITING_BY_DEFAULT}"
_WAITING_OF_TENANT = "w.n FROM rota.count_waiting(ARRAY[CAST(? AS text)], {most}) AS w"
_IN_USE = """
SELECT (SELECT {queued}),
       (SELECT count(*) FROM (SELECT FROM rota.schedules AS s WHERE s.tenant = ? LIMIT {most}) AS s)
"""
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

    def limit_rules(self, names: Sequence[str]) -> Script[Sequence[LimitRule]]:
        """None for a role that may not read them, as above."""
        ((may_read,),) = yield _MAY_READ_LIMITS, ()
        rows = (yield _LIMITS, (text(names),)) if may_read else ()
        found = [limit_rule(LimitRow(**msgspec.json.decode(row[0])), None) for row in rows]
        return [rule for rule in found if rule is not None]

    def tenant_rules(self, names: Sequence[str] | None) -> Script[Sequence[TenantRule]]:
        """None for a role that may not read them, as above."""
        ((may_read,),) = yield _MAY_READ_TENANTS, ()
        rows = (yield _TENANTS, ()) if may_read else ()
        found = [msgspec.json.decode(row[0]) for row in rows]
        return [
            msgspec.convert(columns, TenantRule)
            for columns in found
            if tenant_fault(columns) is None and (names is None or columns["name"] in names)
        ]

    def tenant_in_use(self, name: str, most: int) -> Script[TenantUse]:
        queued = _WAITING_BY_DEFAULT if name == "default" else _WAITING_OF_TENANT
        params = (name,) if name == "default" else (name, name)
        statement = _IN_USE.format(queued=queued.format(most=int(most)), most=int(most))
        ((waiting, schedules),) = yield statement, params
        return TenantUse(name=name, waiting=int(waiting), schedules=int(schedules))

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
