"""The overview, and the tally it rests on. Counts are exact, or capped and said to be estimated.

Of all jobs the indexes and the tally know enough. Of one tenant they do not: jobs are read, a bounded
number of them.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import cast

from ...errors import StoreError
from ...model import (
    FINAL,
    KEPT_RUN_DAYS,
    LIVE,
    ActivityBetween,
    ActivityCount,
    Answer,
    AuditChainEnds,
    AuditSeals,
    CurrentOverview,
    DepthByTenant,
    DueLane,
    DueLanes,
    ExpiredJobs,
    JobCount,
    JobsAhead,
    LastRuns,
    LimitRules,
    Limits,
    Overview,
    Question,
    QueueDepth,
    RunCount,
    RunCounts,
    State,
    TenantRules,
    TenantsInUse,
    WaitingRetries,
    WaitingTenants,
)
from . import audit, rules
from .job_pages import count, count_ahead, last_runs
from .machine_clock import decided
from .rows import DAY, EPOCH, MINUTE, as_json, instant, job, micros
from .statements import statement
from .writer import Transaction

COUNTED = 200_000  # counting more would cost more than it tells
READ_FOR_TENANT = 50_000  # live jobs, and as many of each final state
KEPT_BY_MINUTE = 2 * 1440  # older counts are kept by day


def answer(connection: sqlite3.Connection, question: Question[Answer]) -> Answer:
    return cast(Answer, _answer(connection, question))  # the type of a question is that of its answer


def _answer(connection: sqlite3.Connection, question: Question[Answer]) -> object:
    match question:
        case JobCount(where, most):
            return count(connection, where, most)
        case JobsAhead(before, most):
            return count_ahead(connection, before, most)
        case DepthByTenant(now, most):
            return tenants(connection, micros(now), most)
        case ActivityBetween(since, until):
            return activity(connection, micros(since), micros(until))
        case CurrentOverview(now, None):
            return overview(connection, micros(now))
        case CurrentOverview(now, str(tenant)):
            return overview_of(connection, tenant, micros(now))
        case LastRuns(schedules):
            return last_runs(connection, schedules)
        case RunCounts(schedules, since):
            return run_counts(connection, schedules, since)
        case ExpiredJobs(now, most):
            return [job(row) for row in connection.execute(statement("expired_queued"), (micros(now), most))]
        case DueLanes(now, most):
            rows = connection.execute(statement("due_lanes"), {"now": micros(now), "most": most})
            return [DueLane(queue=queue, task=task, due=due) for queue, task, due in rows]
        case Limits(now, names, most):
            return rules.limits(connection, decided(now), names, most)
        case LimitRules(names):
            return rules.limit_rules(connection, names)
        case TenantRules(names):
            return rules.tenant_rules(connection, names)
        case TenantsInUse(now, names, most):
            return rules.tenants_in_use(connection, decided(now), names, most)
        case WaitingRetries(key, most):
            rows = connection.execute(statement("waiting_retries"), (key, most))
            return [job(row) for row in rows]
        case WaitingTenants(after, most):
            return rules.waiting_tenants(connection, after, most)
        case AuditChainEnds(most):
            return audit.chain(connection, most)
        case AuditSeals(after, limit):
            return audit.seals(connection, after, limit)
    raise StoreError(f"this store cannot answer {type(question).__name__}: upgrade it to match rota")


class _Depth:
    """A QueueDepth in the making."""

    def __init__(self) -> None:
        self.due = self.due_later = self.running = 0
        self.oldest: int | None = None

    def saw(self, run_at: int) -> None:
        self.oldest = run_at if self.oldest is None else min(self.oldest, run_at)

    def made(self, now: int) -> QueueDepth:
        return _depth(now, self.due, self.due_later, self.running, self.oldest)


def overview(connection: sqlite3.Connection, now: int, cap: int = COUNTED) -> Overview:
    seen: defaultdict[str, _Depth] = defaultdict(_Depth)
    estimated = {*_ready(connection, seen, cap), *_later(connection, seen, now, cap)}
    estimated |= {*_running(connection, seen, cap)}
    waiting = connection.execute(statement("count_waiting"), (cap,)).fetchone()[0]
    ended = {state: n for state, n in connection.execute(statement("tally")) if state in FINAL}
    queues = {name: depth.made(now) for name, depth in sorted(seen.items())}
    return _overview(queues, {State.WAITING.value: waiting} | ended, estimated)


def _overview(queues: Mapping[str, QueueDepth], others: Mapping[str, int], estimated: set[str]) -> Overview:
    """``others``: the counts that the queues do not know."""
    depths = queues.values()
    live = {
        State.QUEUED.value: sum(depth.due + depth.due_later for depth in depths),
        State.RUNNING.value: sum(depth.running for depth in depths),
    }
    return Overview(
        counts=dict.fromkeys(map(str, State), 0) | live | dict(others),
        oldest_due_s=max((d.oldest_due_s for d in depths if d.oldest_due_s is not None), default=None),
        queues=queues,
        estimated=frozenset(estimated),
    )


def _ready(connection: sqlite3.Connection, queues: defaultdict[str, _Depth], cap: int) -> Iterator[str]:
    for queue in {row[0] for row in connection.execute(statement("lanes"))}:
        n, oldest = connection.execute(statement("depth_ready"), (queue, cap + 1)).fetchone()
        queues[queue].due += min(n, cap)
        queues[queue].saw(oldest)
        if n > cap:
            yield State.QUEUED.value
    aside = connection.execute(statement("depth_held"), (cap,)).fetchall()
    for queue, n, oldest in aside:
        queues[queue].due += n
        queues[queue].saw(oldest)
    if sum(row[1] for row in aside) >= cap:
        yield State.QUEUED.value


def _later(
    connection: sqlite3.Connection, queues: defaultdict[str, _Depth], now: int, cap: int
) -> Iterator[str]:
    total = 0
    for queue, n, due, first in connection.execute(statement("depth_later"), {"now": now, "most": cap}):
        total += n
        queues[queue].due += due
        queues[queue].due_later += n - due
        if due:
            queues[queue].saw(first)
    if total >= cap:
        yield State.QUEUED.value


def _running(connection: sqlite3.Connection, queues: defaultdict[str, _Depth], cap: int) -> Iterator[str]:
    total = 0
    for queue, n in connection.execute(statement("depth_running"), (cap,)):
        total += n
        queues[queue].running += n
    if total >= cap:
        yield State.RUNNING.value


# --- by tenant -----------------------------------------------------------------------------------


def tenants(connection: sqlite3.Connection, now: int, most: int) -> Mapping[str, QueueDepth]:
    rows = connection.execute(statement("depth_by_tenant"), {"now": now, "most": most})
    return {tenant: _depth(now, *depth) for tenant, *depth in rows}


def overview_of(
    connection: sqlite3.Connection, tenant: str, now: int, cap: int = READ_FOR_TENANT
) -> Overview:
    given = {"now": now, "most": cap, "tenant": tenant}
    rows = connection.execute(statement("depth_of_tenant"), given).fetchall()
    others = {State.WAITING.value: sum(row[5] for row in rows)}
    read = connection.execute(statement("count_live"), (cap + 1,)).fetchone()[0]
    estimated = set(map(str, LIVE)) if read > cap else set()
    for state in map(str, FINAL):
        asked = {"tenant": tenant, "state": state, "most": cap + 1}
        read, others[state] = connection.execute(statement("ended_of_tenant"), asked).fetchone()
        if read > cap:
            estimated.add(state)
    return _overview({row[0]: _depth(now, *row[1:5]) for row in rows}, others, estimated)


def _depth(now: int, due: int, due_later: int, running: int, oldest: int | None) -> QueueDepth:
    waits = None if oldest is None else max(now - oldest, 0) / 1_000_000
    return QueueDepth(due=due, due_later=due_later, running=running, oldest_due_s=waits)


# --- the tally -----------------------------------------------------------------------------------


def activity(connection: sqlite3.Connection, since: int, until: int) -> Sequence[ActivityCount]:
    minutes = (-(-since // MINUTE), -(-until // MINUTE))
    return [
        ActivityCount(at=instant(minute * MINUTE), queue=queue, task=task, state=state, n=n)
        for minute, queue, task, state, n in connection.execute(statement("activity"), minutes)
    ]


def run_counts(
    connection: sqlite3.Connection, schedules: Sequence[tuple[str, str]], since: date
) -> Sequence[RunCount]:
    rows = connection.execute(statement("run_counts"), (as_json(schedules), (since - EPOCH.date()).days))
    return [RunCount(**dict(zip(RunCount.__struct_fields__, row, strict=True))) for row in rows]


def fold(transaction: Transaction, now: int) -> None:
    """Keep old counts by day: the sums stay, the rows do not pile up."""
    transaction.execute(statement("prune_run_counts"), (now // DAY - KEPT_RUN_DAYS,))
    before = now // MINUTE - KEPT_BY_MINUTE
    before -= before % 1440
    transaction.execute(statement("fold_tally"), (before,))
    transaction.execute(statement("delete_folded_tally"), (before,))
