"""Rules of limits and tenants: writing and reading them, and what is in use of them.

Owns their SQL. Must never count without a bound, nor fail on a row that was edited by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ...model import Finding, Held, LimitRule, Rule, TenantRule, TenantUse
from ..sql.in_use import MOST_LANES, LimitsInUse, WaitingLane, key_of_lane, to_ns, wanted_names
from ..sql.rules import (
    LIMIT_COLUMNS,
    TENANT_COLUMNS,
    LimitRow,
    limit_columns,
    limit_rule,
    queues_of,
    rule_findings,
    tenant_fault,
)
from .connections import Connections
from .rows import NOW, Row, text

WOKEN = 100  # jobs that a changed rule may admit, as far as workers are concerned
MOST_WOKEN = 100  # queues
KEPT_BUCKETS = timedelta(days=1)
COUNTED = 100_000  # running jobs, and buckets, that a count reads

_PUT = f"SELECT ord, version FROM rota.put_rules(CAST(%s AS json), {NOW})"
# Waits for no claim, which writes several of them.
_PRUNE = """
DELETE FROM rota.buckets WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM rota.buckets WHERE full_ns < %s FOR UPDATE SKIP LOCKED))
"""
_LIMITS = f"SELECT {', '.join(LIMIT_COLUMNS)} FROM rota.limits"
_TENANTS = f"SELECT {', '.join(TENANT_COLUMNS)} FROM rota.tenants"
_NAMED = "WHERE name = ANY (%s::text[])"
# One index probe for each queue with held jobs.
_HELD_QUEUES = """
WITH RECURSIVE held (queue) AS (
    (SELECT queue FROM rota.queued WHERE due IS NULL ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT q.queue FROM rota.queued AS q WHERE q.due IS NULL AND q.queue > held.queue
             ORDER BY q.queue LIMIT 1)
      FROM held WHERE held.queue IS NOT NULL
)
SELECT queue FROM held WHERE queue IS NOT NULL LIMIT %s
"""
# The first job of each lane of held jobs: one index probe each.
_LANES = """
WITH RECURSIVE held AS (
    (SELECT queue, rank, lane, tenant, task, 1 AS n FROM rota.queued WHERE due IS NULL
      ORDER BY queue, rank, lane, tenant LIMIT 1)
    UNION ALL
    SELECT following.*, held.n + 1 FROM held CROSS JOIN LATERAL (
        SELECT q.queue, q.rank, q.lane, q.tenant, q.task FROM rota.queued AS q
         WHERE q.due IS NULL
           AND (q.queue, q.rank, q.lane, q.tenant) > (held.queue, held.rank, held.lane, held.tenant)
         ORDER BY q.queue, q.rank, q.lane, q.tenant LIMIT 1) AS following
     WHERE held.n < %s
)
SELECT DISTINCT ON (queue, lane, tenant) queue, lane, tenant, task FROM held
"""
_IN_LINE = """
SELECT asked.queue
  FROM unnest(%s::text[]) AS asked (queue),
       (SELECT newest || closed || old_segment AS open FROM rota.segments ORDER BY version DESC LIMIT 1) AS s
 WHERE EXISTS (SELECT FROM rota.queued AS q
                WHERE q.due AND q.segment = ANY (s.open) AND q.queue = asked.queue)
"""
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
# Jobs of the default tenant are in no index of their own, so that most users pay for none.
WAITING_BY_DEFAULT = """(
    SELECT FROM (SELECT q.tenant FROM rota.queued AS q LIMIT 200000) AS q
     WHERE q.tenant = 'default' LIMIT {most}) AS q"""
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
           WHEN 'default' THEN (SELECT count(*) FROM {WAITING_BY_DEFAULT.format(most="%s")})
           ELSE w.n
       END, coalesce(r.n, 0),
       (SELECT count(*) FROM (SELECT FROM rota.schedules AS s WHERE s.tenant = a.name LIMIT %s) AS s),
       0,
       (SELECT coalesce(sum(amount), 0) FROM rota.spending AS s
         WHERE s.tenant = a.name AND s.unit = a.unit AND s.begins >= a.begins),
       coalesce(r.reserved, 0)
  FROM asked AS a LEFT JOIN running AS r ON r.tenant = a.name
  LEFT JOIN rota.count_waiting(ARRAY(SELECT name FROM asked), %s) AS w ON w.tenant = a.name
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
    await _clear_unreadable(connections, rules)
    wired = text([_wire(rule) for rule in rules])
    rows = await connections.rows(_PUT, (wired, now), repeatable=False)
    return [version for _, version in sorted(rows)]


async def concerned_queues(connections: Connections, rules: Sequence[Rule]) -> set[str]:
    """The queues in which changed rules may admit more: their own, and those where jobs are held."""
    held = await connections.rows(_HELD_QUEUES, (MOST_WOKEN,))
    return queues_of(rules) | {row[0] for row in held}


async def _clear_unreadable(connections: Connections, rules: Sequence[Rule]) -> None:
    """A row that no program can read must not keep a new rule from being written."""
    for kind, table, columns in (
        (LimitRule, "limits", LIMIT_COLUMNS),
        (TenantRule, "tenants", TENANT_COLUMNS),
    ):
        names = [rule.name for rule in rules if isinstance(rule, kind) and rule.version == 0]
        if names:
            select = f"SELECT xmin::text, {', '.join(columns)} FROM rota.{table} {_NAMED}"
            for xmin, *row in await connections.rows(select, (names,)):
                if _is_unreadable(table, row):
                    delete = f"DELETE FROM rota.{table} WHERE name = %s AND xmin = %s::xid"
                    await connections.rows(delete, (row[0], xmin))


def _is_unreadable(table: str, row: Sequence[Any]) -> bool:
    if table == "limits":
        return limit_rule(LimitRow(*row), None) is None
    return tenant_fault(dict(zip(TENANT_COLUMNS, row, strict=True))) is not None


def _wire(rule: Rule) -> dict[str, Any]:
    if isinstance(rule, LimitRule):
        columns = limit_columns(rule)
        known = {"kind": "limit", "name": rule.name, "version": rule.version}
        return known | ({"deleted": True} if columns is None else columns)
    if rule.is_empty:
        return {"kind": "tenant", "name": rule.name, "version": rule.version, "deleted": True}
    return {"kind": "tenant"} | {name: getattr(rule, name) for name in TENANT_COLUMNS}


async def prune(connections: Connections, now: datetime) -> None:
    """Delete the buckets of keys that have been full for a day: without one, a key's bucket is full."""
    await connections.rows(_PRUNE, (to_ns(now - KEPT_BUCKETS),), patience="retention")


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
    rows = [LimitRow._make(row) for row in await _rows(connections, _LIMITS, wanted_names(names))]
    if not rows:
        return []
    at = now or (await connections.rows("SELECT clock_timestamp()"))[0][0]
    running = {
        (scope, subject): n for scope, subject, n in await connections.rows(_RUNNING, (COUNTED,)) if subject
    }
    buckets = await _buckets(connections, rows, to_ns(at), names)
    counted = LimitsInUse(rows, running, buckets, to_ns(at))
    full = [row.subject for row in rows if row.scope == "queue" and counted.is_full(row.name)]
    lanes = await _waiting_lanes(connections, full)
    return LimitsInUse(rows, running, buckets, to_ns(at), lanes).held(names, most)


async def _waiting_lanes(connections: Connections, full: Sequence[str]) -> list[WaitingLane]:
    """The lanes of held jobs, and the lines of the queues that are full."""
    held = await connections.rows(_LANES, (MOST_LANES,))
    lanes = [WaitingLane(queue, tenant, task, key_of_lane(lane)) for queue, lane, tenant, task in held]
    ready = await connections.rows(_IN_LINE, (full,)) if full else []
    return lanes + [WaitingLane(queue) for (queue,) in ready]


async def _buckets(
    connections: Connections, rows: Sequence[LimitRow], now_ns: int, names: Sequence[str] | None
) -> Mapping[str, int]:
    if all(row.scope != "family" or row.every_ns is None for row in rows):
        return {}
    keys = [name.removeprefix("key:") for name in names or ()]
    found = await connections.rows(_BUCKETS_OF, (keys,)) if keys else []
    return dict(found + await connections.rows(_BUCKETS, (COUNTED, now_ns)))


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
