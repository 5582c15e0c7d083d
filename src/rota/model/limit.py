"""Limits on what runs at once and how fast, what a tenant is entitled to, and how much of both is in use."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from .choices import Period
from .job import Job
from .overview import Question
from .value import Value


class Limit(Value, frozen=True, kw_only=True):
    """At most ``running`` jobs at any instant, and no more than ``rate`` begun, such as "100/m".

    ``core/jobs/limits.py`` checks it and reads its rate.
    """

    running: int | None = None
    rate: str | None = None  # units per time: "10/s", "100/m", "5000/h", "1/10s"
    burst: int | None = None  # units that may be begun at once; None: those of a second, at least 1
    strict: bool = False  # a key waits while one of its jobs waits for a retry


class LimitRule(Value, frozen=True, kw_only=True):
    """What is stored about a name: the limit that the code declares, and the one set at run time, which wins.

    With neither, the rule is deleted. A family, ``key:account:*``, holds for each of its keys alone; of
    several families the longest prefix holds, and a key's own rule before all of them.
    """

    name: str  # queue:NAME, task:NAME, tenant:NAME, key:NAME, key:PREFIX*
    declared: Limit | None = None
    chosen: Limit | None = None
    version: int = 0  # 0: not stored yet
    updated_at: datetime | None = None

    @property
    def limit(self) -> Limit | None:
        """The one in force."""
        return self.declared if self.chosen is None else self.chosen


class TenantRule(Value, frozen=True, kw_only=True):
    """What is stored about a tenant. One that says nothing is deleted."""

    name: str
    weight: float = 1.0  # its share of a queue beside that of others
    max_priority: int | None = None  # jobs with a higher one are stored with this one
    waiting: int | None = None  # jobs that may wait
    schedules: int | None = None  # schedules that it may have
    bytes_per_day: int | None = None  # of payloads that it may enqueue, by UTC day
    budget: float | None = None  # cents per period
    period: Period | None = None
    budget_alert: float | None = None  # the part of the budget, 0 to 1, at which to raise the alarm
    retention_days: float | None = None  # how long its finished jobs are kept; None: as the settings say
    version: int = 0
    updated_at: datetime | None = None

    @property
    def is_empty(self) -> bool:
        return self == TenantRule(name=self.name, version=self.version, updated_at=self.updated_at)


Rule = LimitRule | TenantRule


class Held(Value, frozen=True, kw_only=True):
    """What is in use of a limit now, counted from the jobs that are there."""

    name: str  # the limit's; of one key of a family, the key's
    running: int  # jobs; of a family: of all its keys
    most: int | None  # of a family: for each key
    rate: str | None = None
    burst: int | None = None
    tokens: float | None = None  # units that could begin now; None: no rate, or a family
    next_token_at: datetime | None = None  # when the next unit can begin; None: now
    waiting_lanes: int = 0  # lanes of jobs that this limit holds up, as far as counted: at most 1,000
    strict: bool = False
    source: str = "run time"  # or "code"
    declared: Limit | None = None  # what the code says, if the limit set at run time replaces it
    rule: str = ""  # the name of the rule in force: the family, for one of its keys
    keys: tuple[Held, ...] = ()  # of a family: the fullest of its keys


class Limits(Question[Sequence[Held]], frozen=True, kw_only=False):
    """The limits in force by name, and what is in use of each. ``names``: only these, also keys."""

    now: datetime | None
    names: tuple[str, ...] | None = None
    most: int = 1000


class LimitRules(Question[Sequence[LimitRule]], frozen=True, kw_only=False):
    """The stored rules of limits by name. What cannot be read is left out: ``check_health`` finds it."""

    names: tuple[str, ...] | None = None


class TenantRules(Question[Sequence[TenantRule]], frozen=True, kw_only=False):
    """The stored rules of tenants by name."""

    names: tuple[str, ...] | None = None


class WaitingRetries(Question[Sequence[Job]], frozen=True, kw_only=False):
    """Queued jobs with this concurrency key that have begun before, the next to begin first."""

    key: str
    most: int = 1


class TenantUse(Value, frozen=True, kw_only=True):
    """What a tenant has in the store now."""

    name: str
    waiting: int = 0  # queued jobs, due or not; at most ``most``
    running: int = 0
    schedules: int = 0
    bytes_today: int = 0  # of payloads, if it has a quota for them
    spent: float = 0.0  # cents in the period of its budget; without one: since midnight UTC
    reserved: float = 0.0  # cents: the prices of what runs now


class TenantsInUse(Question[Sequence[TenantUse]], frozen=True, kw_only=False):
    """What these tenants have in the store; each count reads at most ``most`` rows.

    0: only what was spent.
    """

    now: datetime | None
    names: tuple[str, ...]
    most: int = 100_000


class WaitingTenants(Question[Sequence[str]], frozen=True, kw_only=False):
    """The tenants that have queued or running jobs, by name, at most ``most`` after this one."""

    after: str = ""
    most: int = 1000
