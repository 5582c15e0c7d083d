"""Schedules in the caller's own transaction, on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ...errors import SchemaMismatch
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
from ..sql.external import R, Script
from . import audit, rules, schedule_queries
from .rows import as_json, document, micros
from .schedule_rows import columns
from .statements import statement


class SqliteScripts:
    """Each a statement or two; ``where`` is the database that the connection should lead to."""

    def __init__(self, where: str) -> None:
        self._where = where

    def check(self, script: Script[R]) -> Script[R]:
        """The script; SchemaMismatch in a database without rota's tables."""
        try:
            return (yield from script)
        except Exception as error:
            if "no such table: rota_" not in str(error):
                raise
            raise SchemaMismatch(
                f"connection= leads to a database without rota's tables: connect it to {self._where}, "
                "and run `rota migrate` if that is new"
            ) from error

    def schedules(self, where: ScheduleFilter, page: PageRequest) -> Script[Page[Schedule]]:
        rows = yield schedule_queries.page_query(where, page)
        return schedule_queries.page_of([tuple(row) for row in rows], page)

    def put(self, schedules: Sequence[Schedule], now: datetime) -> Script[Sequence[int | None]]:
        versions: list[int | None] = []
        for one in schedules:
            following = one.version + 1
            cells = columns(one, following, micros(now))
            if one.version == 0:
                rows = yield f"{statement('put_schedule')}\nRETURNING id", cells
            else:
                text = f"{statement('rewrite_schedule')}\nRETURNING id"
                rows = yield text, (*cells, one.id, one.version)
            versions.append(following if rows else None)
        return versions

    def delete(self, ids: Sequence[str]) -> Script[Sequence[str]]:
        yield statement("drop_run_counts"), (as_json(ids),)
        rows = yield statement("drop_schedules"), (as_json(ids),)
        return [row[0] for row in rows]

    def document(self, kind: str, key: str) -> Script[Sequence[Document]]:
        rows = yield statement("document"), (kind, key)
        return [document(tuple(row)) for row in rows]

    def limit_rules(self, names: Sequence[str]) -> Script[Sequence[LimitRule]]:
        rows = yield rules.NAMED_LIMITS, (as_json(names),)
        return rules.limit_rules_of(rows)

    def tenant_rules(self, names: Sequence[str] | None) -> Script[Sequence[TenantRule]]:
        rows = yield rules.TENANTS, ()
        found = [rules.tenant_rule(tuple(row)) for row in rows]
        return [rule for rule in found if rule is not None and (names is None or rule.name in names)]

    def tenant_in_use(self, name: str, most: int) -> Script[TenantUse]:
        given = (name, most, name, name, most, name, most)
        ((waiting, schedules),) = yield statement("tenant_quota"), given
        return TenantUse(name=name, waiting=waiting, schedules=schedules)

    def audit(self, entries: Sequence[AuditEntry]) -> Script[None]:
        ((last,),) = yield statement("last_audit"), ()
        for row in audit.rows_after(last, entries):
            yield statement("append_audit"), row
