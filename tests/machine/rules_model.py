"""Limits, tenants' budgets and what they admit, as a list and a loop, for comparison with every store.

Owns the meaning of rules, not how stores find jobs. Where the contract leaves a store some freedom, such as
what remains of a bucket after its rule was dropped, the model keeps two values: the fullest bucket that a
store may have, which bounds what it may begin, and the emptiest, which bounds what it must begin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from rota.core.jobs.limits import Bucket, bucket
from rota.model import JobId, Limit, LimitRule, Period, Settlement, State, TenantRule

NEVER = -(1 << 62)


class Counted(Protocol):
    """What rules need to know of a job."""

    id: JobId
    tenant: str
    queue: str
    task: str
    priority: int
    run_at: datetime
    attempt: int
    claimed_at: datetime | None
    concurrency_key: str | None
    units: int
    price: float | None


def nanoseconds(at: datetime) -> int:
    return int(at.timestamp()) * 1_000_000_000 + at.microsecond * 1000


@dataclass
class Level:
    """When a bucket is full again: at the earliest and at the latest that a store may believe."""

    rule: str
    soonest: int = NEVER
    latest: int = NEVER

    def take(self, rate: Bucket, units: int, now: int) -> None:
        self.soonest = max(self.soonest, now) + units * rate.every_ns
        self.latest = max(min(self.latest, now + rate.burst * rate.every_ns), now) + units * rate.every_ns

    def units_at_most(self, rate: Bucket, now: int) -> int:
        return (now + rate.burst * rate.every_ns - max(self.soonest, now)) // rate.every_ns

    def units_at_least(self, rate: Bucket, now: int) -> int:
        latest = min(self.latest, now + rate.burst * rate.every_ns)
        return (now + rate.burst * rate.every_ns - max(latest, now)) // rate.every_ns


@dataclass
class Rules:
    limits: dict[str, LimitRule] = field(default_factory=dict)
    tenants: dict[str, TenantRule] = field(default_factory=dict)
    levels: dict[str, Level] = field(default_factory=dict)
    costs: list[tuple[str, datetime, float]] = field(default_factory=list)
    changed_at: dict[str, datetime] = field(default_factory=dict)

    # --- changing ----------------------------------------------------------------------------

    def put(self, rule: LimitRule | TenantRule, now: datetime) -> None:
        if isinstance(rule, TenantRule):
            self.tenants[rule.name] = rule
            return
        self.changed_at[rule.name] = now
        if rule.limit is None:
            self.limits.pop(rule.name, None)
        else:
            self.limits[rule.name] = rule
        rate = None if rule.limit is None else bucket(rule.limit)
        for level in self.levels.values():
            if level.rule == rule.name:
                most = NEVER if rate is None else nanoseconds(now) + rate.burst * rate.every_ns
                level.soonest = min(level.soonest, most)

    def begin(self, job: Counted, now: datetime) -> None:
        for name, limit in self.over(job).items():
            if (rate := bucket(limit)) is not None:
                self.level(name).take(rate, job.units, nanoseconds(now))

    def end(self, job: Counted, change: Settlement, now: datetime) -> None:
        """What it cost is spent. One that was returned unbegun gives its units back."""
        if change.cost_cents:
            self.costs.append((job.tenant, now, change.cost_cents))
        has_run = change.started_at is not None or change.crashes is not None
        if change.state is State.QUEUED and not has_run:
            surely = job.claimed_at is not None and change.attempt < job.attempt
            for name, limit in self.over(job).items():
                self._give_back(name, limit, job, surely, now)

    def _give_back(self, name: str, limit: Limit, job: Counted, surely: bool, now: datetime) -> None:
        rate = bucket(limit)
        if rate is None:
            return
        level, since = self.level(name), job.claimed_at or now
        back = max(0, job.units * rate.every_ns - (nanoseconds(now) - nanoseconds(since)))
        level.soonest -= back
        changed_at = self.changed_at.get(level.rule)
        if surely and changed_at is not None and changed_at < since:
            level.latest -= back

    # --- which rules a job is under ----------------------------------------------------------

    def over(self, job: Counted) -> dict[str, Limit]:
        """The limits that it counts under, by scope and subject: each key of a family by itself."""
        found = {}
        for name in (f"queue:{job.queue}", f"task:{job.task}", f"tenant:{job.tenant}"):
            if name in self.limits:
                found[name] = name
        if job.concurrency_key is not None and (family := self.rule_of_key(job.concurrency_key)):
            found[f"key:{job.concurrency_key}"] = family
        limits = {name: self.limits[rule].limit for name, rule in found.items()}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def rule_of_key(self, key: str) -> str | None:
        if f"key:{key}" in self.limits:
            return f"key:{key}"
        families = [name for name in self.limits if name.endswith("*") and f"key:{key}".startswith(name[:-1])]
        return max(families, key=len, default=None)

    def level(self, name: str) -> Level:
        """The bucket of a limit, which is new to a store if another rule than before governs the key."""
        rule = self.rule_of_key(name[4:]) if name.startswith("key:") else name
        level = self.levels.setdefault(name, Level(rule or name))
        if level.rule != rule:
            level.rule, level.soonest = rule or name, NEVER
        return level

    # --- what they admit ---------------------------------------------------------------------

    def admit(
        self,
        name: str,
        limit: Limit,
        job: Counted,
        running: Iterable[Counted],
        taken: list[Counted],
        now: int,
    ) -> bool:
        """Whether the limit admits the job in any case, beside those that run and those just taken."""
        same = [other for other in taken if name in self.over(other)]
        if limit.running is not None:
            count = sum(name in self.over(other) for other in running) + len(same)
            if count >= limit.running:
                return False
        rate = bucket(limit)
        if rate is not None:
            begun = sum(other.units for other in same)
            if self.level(name).units_at_least(rate, now) - begun < job.units:
                return False
        return True

    def budget_admits(
        self, job: Counted, running: Iterable[Counted], taken: list[Counted], now: datetime
    ) -> bool:
        rule = self.tenants.get(job.tenant)
        if rule is None or rule.budget is None or rule.period is None:
            return True
        mine = [other for other in (*running, *taken) if other.tenant == job.tenant]
        used = self.spent(job.tenant, rule.period, now) + sum(other.price or 0.0 for other in mine)
        return used < rule.budget and used + (job.price or 0.0) <= rule.budget

    def spent(self, tenant: str, period: Period, now: datetime) -> float:
        start = beginning(period, now)
        return sum(cents for who, at, cents in self.costs if who == tenant and start <= at)


def beginning(period: Period, now: datetime) -> datetime:
    """Of the hour, day or month; the machine's weeks are within a month."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    return (
        hour if period == "hour" else hour.replace(hour=0) if period == "day" else hour.replace(day=1, hour=0)
    )
