"""Why a due job may not begin: limits, rates, budgets. Facts in, reasons out. Pure.

``why.py`` puts them in order among all reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from shlex import quote

from ...model import Held, Job, Limit, TenantRule, TenantUse, Value
from ..tenants import budget_text, money
from .buckets import budget_admits
from .limits import NS, bucket
from .periods import period_ends
from .why_reasons import Reason, exact

WHEN = {"hour": "this hour", "day": "today", "week": "this week", "month": "this month"}


class LimitFacts(Value, frozen=True, kw_only=True):
    """One limit that the job is under, as it is now."""

    held: Held
    holders: Sequence[Job] = ()  # of a full one: jobs that hold it, the oldest first; not all of them
    retrying: Job | None = None  # of a strict one: the job that its key waits for
    before: int = 0  # of a full key: its waiting jobs that come first
    has_more: bool = False  # not all of its waiting jobs were counted
    is_shared: bool = False  # others use it, too, and who asks may not know how much


class BudgetFacts(Value, frozen=True, kw_only=True):
    rule: TenantRule
    use: TenantUse


def over_limits(job: Job, limits: Sequence[LimitFacts], now: datetime) -> Iterable[Reason]:
    """The limits that do not admit the job now."""
    for one in limits:
        yield from _oversized(job, one.held)
        yield from _strict(job, one)
        yield from _full(one)
        yield from _used_up(job, one, now)


def over_budget(job: Job, facts: BudgetFacts | None, now: datetime) -> Iterable[Reason]:
    """The budget of the job's tenant, if it lets nothing more begin."""
    if facts is None or facts.rule.budget is None or facts.rule.period is None:
        return
    rule, use = facts.rule, facts.use
    if budget_admits(facts.rule.budget, use.spent + use.reserved, job.price):
        return
    reserved = f" and reserved {money(use.reserved)}" if use.reserved else ""
    price = f"; the price of this job is {money(job.price)}" if job.price else ""
    yield Reason(
        code="budget",
        text=f"Tenant {rule.name} has spent {money(use.spent)}{reserved} of {money(facts.rule.budget)} "
        f"{WHEN[facts.rule.period]}{price}.",
        remedy=f"It may begin in the next {rule.period}, or with a larger budget than {budget_text(rule)}: "
        f"rota tenants budget {quote(rule.name)} AMOUNT/{rule.period}",
        clears_at=period_ends(facts.rule.period, now),
    )


# --- one limit -----------------------------------------------------------------------------------


def _full(facts: LimitFacts) -> Iterable[Reason]:
    held = facts.held
    if held.most is None or held.running < held.most:
        return
    count = "" if facts.is_shared else f" ({held.running} of {held.most})"
    larger = f", or with a larger limit: {set_command(held, running=held.most + 1)}"
    yield Reason(
        code="limit_full",
        text=f"Limit {_named(held)} is full{count}{_held_by(facts)}.{_before(facts)}",
        remedy="It begins when a job under it ends" + ("." if facts.is_shared else larger),
        limit=held.name,
        blocker=facts.holders[0].id if facts.holders else None,
    )


def _held_by(facts: LimitFacts) -> str:
    if not facts.holders:
        return ""
    first = facts.holders[0]
    since = f" since {exact(first.started_at)}" if first.started_at is not None else ""
    others = facts.held.running - 1
    more = "" if others < 1 or facts.is_shared else f" and {others} other{'s' * (others > 1)}"
    return f": held by job {first.id} on worker {first.worker}{since}{more}"


def _before(facts: LimitFacts) -> str:
    if not facts.before or facts.is_shared:
        return ""
    many = " or more" if facts.has_more else ""
    jobs, verb = ("job", "comes") if facts.before == 1 else ("jobs", "come")
    return f" {facts.before:,}{many} waiting {jobs} of this key {verb} before it."


def _used_up(job: Job, facts: LimitFacts, now: datetime) -> Iterable[Reason]:
    held = facts.held
    if held.rate is None or held.tokens is None or held.tokens >= job.units or job.units > (held.burst or 0):
        return
    at = held.next_token_at or now
    if job.units > 1:
        at = max(at, now + timedelta(seconds=(job.units - held.tokens) * every_s(held)))
    needs = "the next token comes" if job.units == 1 else f"it takes {job.units:,} units, which are there"
    rate = "" if facts.is_shared else f" ({held.rate})"
    yield Reason(
        code="rate",
        text=f"The rate of {_named(held)}{rate} is used up: {needs} at {exact(at)}.",
        remedy=None if facts.is_shared else f"Wait, or allow more: {set_command(held, rate='RATE')}",
        clears_at=at,
        limit=held.name,
    )


def _oversized(job: Job, held: Held) -> Iterable[Reason]:
    if held.rate is None or held.burst is None or job.units <= held.burst:
        return
    yield Reason(
        code="oversized",
        text=f"It takes {job.units:,} units, and limit {_named(held)} never has more than {held.burst:,}, "
        "its burst.",
        remedy=f"Raise the burst: {set_command(held, burst=job.units)}",
        limit=held.name,
    )


def _strict(job: Job, facts: LimitFacts) -> Iterable[Reason]:
    first = facts.retrying
    if not facts.held.strict or first is None or first.id == job.id:
        return
    yield Reason(
        code="strict",
        text=f"Limit {_named(facts.held)} is strict: job {first.id} comes first, which waits for its retry, "
        f"due at {exact(first.run_at)}.",
        remedy=f"Retry that one now: rota jobs update {first.id} --now. Or give it up: "
        f"rota jobs cancel {first.id}",
        limit=facts.held.name,
        blocker=first.id,
    )


def _named(held: Held) -> str:
    """The limit, with the family that it belongs to."""
    return held.name if held.rule in ("", held.name) else f"{held.name} (of {held.rule})"


def set_command(held: Held, **changes: int | str) -> str:
    """The command that replaces the limit by one with these changes: it names the whole limit."""
    now = {"running": held.most, "rate": held.rate, "burst": held.burst if held.rate else None}
    given = {name: value for name, value in {**now, **changes}.items() if value is not None}
    options = [f"--{name} {quote(str(value))}" for name, value in given.items()]
    return " ".join(["rota limits set", quote(held.rule or held.name), *options, *["--strict"] * held.strict])


def every_s(held: Held) -> float:
    """The seconds in which a unit of its rate comes back; infinity if it has none."""
    rate = bucket(Limit(rate=held.rate)) if held.rate is not None else None
    return math.inf if rate is None else rate.every_ns / NS
