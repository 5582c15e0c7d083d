"""Rules of limits and tenants: writing and reading them, and what is in use of them.

Must never count without a bound, nor fail on a row that was edited by hand.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.jobs.periods import period_begins
from ...model import Finding, Held, LimitRule, Period, Rule, TenantRule, TenantUse
from ..sql.in_use import MOST_LANES, LimitsInUse, WaitingLane, key_of_lane, wanted_names
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
from .allowances import read_met
from .lanes import NOWHERE
from .rows import DAY, as_json, instant, micros, readable_instant
from .statements import statement
from .writer import Transaction

MOST_WOKEN = 100  # queues
COUNTED = 100_000  # running jobs, and buckets, that a count reads
NS = 1000  # in a microsecond

_NAMED = "WHERE name IN (SELECT value FROM json_each(?))"
_LIMITS = f"SELECT {', '.join(LIMIT_COLUMNS)} FROM rota_limits"
NAMED_LIMITS = f"{_LIMITS} {_NAMED}"
TENANTS = f"SELECT {', '.join(TENANT_COLUMNS)} FROM rota_tenants"


# --- writing -------------------------------------------------------------------------------------


def put(transaction: Transaction, rules: Sequence[Rule], now: int) -> Sequence[int | None]:
    """Write each one whose version is the stored one (0: absent); new versions, None if refused."""
    versions = [_put(transaction, rule, now) for rule in rules]
    if any(version is not None for version in versions):  # more may be admitted now
        held = transaction.execute(statement("held_queues"), (MOST_WOKEN,))
        transaction.ready.update(queues_of(rules), [row[0] for row in held])
    return versions


def _put(transaction: Transaction, rule: Rule, now: int) -> int | None:
    table = "rota_limits" if isinstance(rule, LimitRule) else "rota_tenants"
    stored = _stored_version(transaction, rule)
    if stored != rule.version:
        return None
    columns = limit_columns(rule) if isinstance(rule, LimitRule) else _tenant_columns(rule)
    if columns is None:
        transaction.execute(f"DELETE FROM {table} WHERE name = ?", (rule.name,))
        return 0
    columns |= {"version": stored + 1, "updated_at": now}
    if isinstance(rule, LimitRule):
        columns["full_ns"] = _full_ns(transaction, columns, now)
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    transaction.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", tuple(columns.values()))
    return stored + 1


def _tenant_columns(rule: TenantRule) -> dict[str, Any] | None:
    return None if rule.is_empty else {name: getattr(rule, name) for name in TENANT_COLUMNS}


def _stored_version(transaction: Transaction, rule: Rule) -> int:
    """0: absent, or a row that no program can read."""
    if isinstance(rule, LimitRule):
        row = transaction.execute(f"{_LIMITS} WHERE name = ?", (rule.name,)).fetchone()
        stored = None if row is None else _limit_rule(LimitRow(*row))
        return 0 if stored is None else stored.version
    row = transaction.execute(f"{TENANTS} WHERE name = ?", (rule.name,)).fetchone()
    tenant = None if row is None else tenant_rule(row)
    return 0 if tenant is None else tenant.version


def _full_ns(transaction: Transaction, columns: dict[str, Any], now: int) -> int:
    """The bucket keeps what was taken from it, but is never further from full than its size says."""
    most = now * NS + (columns["every_ns"] or 0) * (columns["burst"] or 0)
    if columns["scope"] == "family" and columns["every_ns"] is not None:
        given = {"most": most, "prefix": columns["subject"]}
        transaction.execute(statement("cap_buckets"), given)
    row = transaction.execute("SELECT full_ns FROM rota_limits WHERE name = ?", (columns["name"],)).fetchone()
    return min(row[0], most) if row and isinstance(row[0], int) else 0


def prune(transaction: Transaction, now: int) -> None:
    """Delete the buckets of keys that have been full for a day: without one, a key's bucket is full."""
    transaction.execute("DELETE FROM rota_buckets WHERE full_ns < ?", ((now - DAY) * NS,))


# --- reading -------------------------------------------------------------------------------------


def _rows(connection: sqlite3.Connection, select: str, names: Sequence[str] | None) -> list[Any]:
    if names is None:
        return connection.execute(f"{select} ORDER BY name").fetchall()
    return connection.execute(f"{select} {_NAMED} ORDER BY name", (as_json(names),)).fetchall()


def _limit_rule(row: LimitRow) -> LimitRule | None:
    if not isinstance(row.version, int):
        return None
    return limit_rule(row, readable_instant(row.updated_at))


def tenant_rule(row: Sequence[Any]) -> TenantRule | None:
    columns = dict(zip(TENANT_COLUMNS, row, strict=True))
    if tenant_fault(columns) is not None:
        return None
    return TenantRule(**columns | {"updated_at": readable_instant(columns["updated_at"])})


def limit_rules(connection: sqlite3.Connection, names: Sequence[str] | None) -> Sequence[LimitRule]:
    return limit_rules_of(_rows(connection, _LIMITS, names))


def limit_rules_of(rows: Iterable[Sequence[Any]]) -> Sequence[LimitRule]:
    rules = [_limit_rule(LimitRow(*row)) for row in rows]
    return [rule for rule in rules if rule is not None]


def tenant_rules(connection: sqlite3.Connection, names: Sequence[str] | None) -> Sequence[TenantRule]:
    rules = [tenant_rule(row) for row in _rows(connection, TENANTS, names)]
    return [rule for rule in rules if rule is not None]


def limits(
    connection: sqlite3.Connection, now: int, names: Sequence[str] | None, most: int
) -> Sequence[Held]:
    rows = [LimitRow(*row) for row in _rows(connection, _LIMITS, wanted_names(names))]
    if not rows:
        return []
    running, buckets = _running(connection), _buckets(connection, rows, now * NS, names)
    counted = LimitsInUse(rows, running, buckets, now * NS)
    lanes = _waiting_lanes(
        connection, [row for row in rows if row.scope == "queue" and counted.is_full(row.name)]
    )
    return LimitsInUse(rows, running, buckets, now * NS, lanes).held(names, most)


def _running(connection: sqlite3.Connection) -> Mapping[tuple[str, str], int]:
    counts: Counter[tuple[str, str]] = Counter()
    for queue, task, tenant, key in connection.execute(statement("running_subjects"), (COUNTED,)):
        counts.update((("queue", queue), ("task", task), ("tenant", tenant)))
        if key is not None:
            counts["key", key] += 1
    return counts


def _buckets(
    connection: sqlite3.Connection, rows: Sequence[LimitRow], now_ns: int, names: Sequence[str] | None
) -> Mapping[str, int]:
    if all(row.scope != "family" or row.every_ns is None for row in rows):
        return {}
    keys = [name.removeprefix("key:") for name in names or ()]
    given = {"now": now_ns, "most": COUNTED, "keys": as_json(keys)}
    return dict(connection.execute(statement("buckets"), given).fetchall())


def _waiting_lanes(connection: sqlite3.Connection, full: Sequence[LimitRow]) -> Sequence[WaitingLane]:
    """The lanes of held jobs, and the lines of the queues that are full."""
    queue, tenant, lane, task = NOWHERE
    given = {
        "queue": queue, "tenant": tenant, "lane": lane, "task": task, "most": MOST_LANES, "queues": "[]",
        "tenants": "[]",
    }  # fmt: skip
    heads = read_met(connection.execute(statement("held_lanes"), given).fetchone()[0])
    lanes = [WaitingLane(one.queue, one.tenant, one.task, key_of_lane(one.lane)) for one in heads]
    ready = connection.execute(statement("queues_in_line"), (as_json([row.subject for row in full]),))
    return [*lanes, *(WaitingLane(queue) for (queue,) in ready)]


def tenants_in_use(
    connection: sqlite3.Connection, now: int, names: Sequence[str], most: int
) -> Sequence[TenantUse]:
    periods = {rule.name: rule.period for rule in tenant_rules(connection, names)}
    return [_tenant_in_use(connection, name, periods.get(name), now, most) for name in sorted(set(names))]


def _tenant_in_use(
    connection: sqlite3.Connection, name: str, period: Period | None, now: int, most: int
) -> TenantUse:
    given = {
        "tenant": name,
        "most": most,
        "unit": "day" if period in (None, "week") else period,
        "begins": micros(period_begins(period or "day", instant(now))),
    }
    row = connection.execute(statement("tenant_in_use"), given).fetchone()
    return TenantUse(name=name, **dict(zip(TenantUse.__struct_fields__[1:], row, strict=True)))


def waiting_tenants(connection: sqlite3.Connection, after: str, most: int) -> Sequence[str]:
    given = {"after": after, "most": most, "read": COUNTED}
    return [row[0] for row in connection.execute(statement("waiting_tenants"), given)]


def check_rules(connection: sqlite3.Connection) -> Sequence[Finding]:
    limits = connection.execute(f"{_LIMITS} LIMIT ?", (COUNTED,)).fetchall()
    tenants = connection.execute(f"{TENANTS} LIMIT ?", (COUNTED,)).fetchall()
    return rule_findings("rota_", [LimitRow(*row) for row in limits], tenants)
