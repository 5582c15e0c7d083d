"""Rules of limits and tenants: writing and reading them, and what is in use of them.

Owns their SQL. Must never count without a bound, nor fail on a row that was edited by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ...model import Finding, Held, LimitRule, Rule, TenantRule, TenantUse
from ..sql.rules import (
    LIMIT_COLUMNS,
    TENANT_COLUMNS,
    InUse,
    LimitRow,
    held,
    limit_columns,
    limit_rule,
    rule_findings,
    tenant_fault,
    to_ns,
    wanted_names,
)
from .connections import Connections
from .rows import NOW, Row, text

COUNTED = 100_000  # running jobs, and buckets, that a count reads

_PUT = f"SELECT ord, version FROM rota.put_rules(CAST(%s AS json), {NOW})"
_CLEAR = "DELETE FROM rota.limits WHERE name = ANY (%s) AND xmin = ANY (%s::xid[])"
_LIMITS = f"SELECT {', '.join(LIMIT_COLUMNS)} FROM rota.limits"
_TENANTS = f"SELECT {', '.join(TENANT_COLUMNS)} FROM rota.tenants"
_NAMED = "WHERE name = ANY (%s::text[])"
# One pass over what runs, by each of the things that a limit can be for.
_RUNNING = """
SELECT CASE WHEN grouping(queue) = 0 THEN 'queue' WHEN grouping(task) = 0 THEN 'task'
            WHEN grouping(tenant) = 0 THEN 'tenant' ELSE 'key' END,
       coalesce(queue, task, tenant, concurrency_key), count(*)
  FROM (SELECT queue, task, tenant, concurrency_key FROM rota.running LIMIT %s) AS r
 GROUP BY GROUPING SETS ((queue), (task), (tenant), (concurrency_key))
"""
_BUCKETS = """
SELECT concurrency_key, full_ns FROM (SELECT * FROM rota.buckets LIMIT %s) AS b WHERE full_ns > %s
"""
_BUCKETS_OF = "SELECT concurrency_key, full_ns FROM rota.buckets WHERE concurrency_key = ANY (%s::text[])"
_IN_USE = f"""
WITH asked AS (
    SELECT a.name,
           date_trunc(coalesce(t.period, 'day'), n.now AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS begins,
           CASE coalesce(t.period, 'day') WHEN 'week' THEN 'day' ELSE coalesce(t.period, 'day') END AS unit
      FROM unnest(%s::text[]) AS a (name) CROSS JOIN (SELECT {NOW} AS now) AS n
      LEFT JOIN rota.tenants AS t ON t.name = a.name AND t.period IN ('hour', 'day', 'week', 'month')
), running AS (
    SELECT tenant, count(*) AS n, sum(price) AS reserved
      FROM (SELECT tenant, price FROM rota.running LIMIT %s) AS r
     WHERE tenant IN (SELECT name FROM asked) GROUP BY 1
)
SELECT a.name, CASE a.name
           WHEN 'default' THEN (SELECT count(*) FROM (SELECT tenant FROM rota.queued LIMIT %s) AS q
                                 WHERE q.tenant = 'default')
           ELSE (SELECT count(*) FROM (SELECT FROM rota.queued AS q
                                        WHERE q.tenant = a.name AND q.tenant <> 'default' LIMIT %s) AS q)
       END, coalesce(r.n, 0),
       (SELECT count(*) FROM (SELECT FROM rota.schedules AS s WHERE s.tenant = a.name LIMIT %s) AS s),
       0,
       (SELECT coalesce(sum(amount), 0) FROM rota.spending AS s
         WHERE s.tenant = a.name AND s.unit = a.unit AND s.begins >= a.begins),
       coalesce(r.reserved, 0)
  FROM asked AS a LEFT JOIN running AS r ON r.tenant = a.name
 ORDER BY a.name COLLATE "C"
"""
_WAITING_TENANTS = """
SELECT tenant FROM (
    (SELECT tenant FROM rota.queued LIMIT %s) UNION (SELECT tenant FROM rota.running LIMIT %s)) AS live
 WHERE tenant > %s ORDER BY tenant COLLATE "C" LIMIT %s
"""


# --- writing -------------------------------------------------------------------------------------


async def put(connections: Connections, rules: Sequence[Rule], now: datetime | None) -> list[int | None]:
    if not rules:
        return []
    await _clear_unreadable(connections, [one.name for one in rules if _is_new_limit(one)])
    wired = text([_wire(rule) for rule in rules])
    rows = await connections.rows(_PUT, (wired, now), repeatable=False)
    return [version for _, version in sorted(rows)]


def _is_new_limit(rule: Rule) -> bool:
    return isinstance(rule, LimitRule) and rule.version == 0


async def _clear_unreadable(connections: Connections, names: Sequence[str]) -> None:
    """A row that no program can read must not keep a new rule from being written."""
    if not names:
        return
    rows = await connections.rows(f"SELECT xmin::text, {_columns()} FROM rota.limits {_NAMED}", (names,))
    spoiled = [(row[0], row[1]) for row in rows if limit_rule(LimitRow(*row[1:]), None) is None]
    if spoiled:
        xmins, gone = zip(*spoiled, strict=True)
        await connections.rows(_CLEAR, (list(gone), list(xmins)))


def _columns() -> str:
    return ", ".join(LIMIT_COLUMNS)


def _wire(rule: Rule) -> dict[str, Any]:
    if isinstance(rule, LimitRule):
        columns = limit_columns(rule)
        known = {"kind": "limit", "name": rule.name, "version": rule.version}
        return known | ({"deleted": True} if columns is None else columns)
    if rule.is_empty:
        return {"kind": "tenant", "name": rule.name, "version": rule.version, "deleted": True}
    return {"kind": "tenant"} | {name: getattr(rule, name) for name in TENANT_COLUMNS}


# --- reading -------------------------------------------------------------------------------------


async def limit_rules(connections: Connections, names: Sequence[str] | None) -> list[LimitRule]:
    rows = map(LimitRow._make, await _rows(connections, _LIMITS, names))
    rules = [limit_rule(row, row.updated_at) for row in rows]
    return [rule for rule in rules if rule is not None]


async def tenant_rules(connections: Connections, names: Sequence[str] | None) -> list[TenantRule]:
    found = [dict(zip(TENANT_COLUMNS, row, strict=True)) for row in await _rows(connections, _TENANTS, names)]
    return [TenantRule(**columns) for columns in found if tenant_fault(columns) is None]


async def _rows(connections: Connections, select: str, names: Sequence[str] | None) -> list[Row]:
    order = 'ORDER BY name COLLATE "C"'
    if names is None:
        return await connections.rows(f"{select} {order}")
    return await connections.rows(f"{select} {_NAMED} {order}", (list(names),))


async def limits(
    connections: Connections, now: datetime | None, names: Sequence[str] | None, most: int
) -> list[Held]:
    wanted = None if names is None else wanted_names(names)
    rows = [LimitRow._make(row) for row in await _rows(connections, _LIMITS, wanted)]
    if not rows:
        return []
    at = now or (await connections.rows("SELECT clock_timestamp()"))[0][0]
    in_use = await _in_use(connections, rows, to_ns(at), names)
    return held(rows, in_use, to_ns(at), names, most)


async def _in_use(
    connections: Connections, rows: Sequence[LimitRow], now_ns: int, names: Sequence[str] | None
) -> InUse:
    running = {
        (scope, subject): n
        for scope, subject, n in await connections.rows(_RUNNING, (COUNTED,))
        if subject is not None
    }
    buckets: dict[str, int] = {}
    if any(row.scope == "family" and row.every_ns is not None for row in rows):
        keys = [name.removeprefix("key:") for name in names or ()]
        found = await connections.rows(_BUCKETS_OF, (keys,)) if keys else []
        buckets = dict(found + await connections.rows(_BUCKETS, (COUNTED, now_ns)))
    return InUse(running=running, buckets=buckets, waiting={})


async def tenants_in_use(
    connections: Connections, now: datetime | None, names: Sequence[str], most: int
) -> list[TenantUse]:
    params = (sorted(set(names)), now, most, most, most, most)
    rows = await connections.rows(_IN_USE, params)
    return [TenantUse(**dict(zip(TenantUse.__struct_fields__, row, strict=True))) for row in rows]


async def waiting_tenants(connections: Connections, after: str, most: int) -> list[str]:
    return [row[0] for row in await connections.rows(_WAITING_TENANTS, (COUNTED, COUNTED, after, most))]


# --- health --------------------------------------------------------------------------------------


async def check_rules(connections: Connections) -> list[Finding]:
    limits = await connections.rows(f"{_LIMITS} LIMIT %s", (COUNTED,))
    tenants = await connections.rows(f"{_TENANTS} LIMIT %s", (COUNTED,))
    return rule_findings("rota.", map(LimitRow._make, limits), tenants)
