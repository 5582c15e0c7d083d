"""What a tenant is entitled to: the grammar of its rule, the periods of budgets, and quotas. Pure."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypedDict, get_args

import msgspec

from ..errors import OptionError, QuotaExceeded
from ..model import NewJob, Period, TenantRule, TenantUse
from .jobs.options import FOREVER, MOST_CENTS, PRIORITY_LIMIT, name_text
from .jobs.periods import period_begins

MOST_WEIGHT = 1_000_000.0
MOST_COUNT = 10**12
MOST_SCHEDULES = 10**6
MOST_DAYS = 36_500.0
DAY_S = 86_400.0

BudgetLevel = Literal["alert", "reached"]
PERIODS: tuple[Period, ...] = get_args(Period)

_BUDGET = re.compile(r"\s*([0-9]{1,12})(?:\.([0-9]{1,2}))?\s*/\s*([a-z]+)\s*", re.ASCII)


class TenantOptions(TypedDict, total=False):
    """What ``app.tenants.set`` takes. What is left out stays as it is, None clears it."""

    weight: float | None  # its share of a queue beside that of others; 1 unless set
    max_priority: int | None  # jobs with a higher one are stored with this one
    waiting: int | None  # jobs that may wait
    schedules: int | None  # schedules that it may have
    bytes_per_day: int | None  # of payloads that it may enqueue, by UTC day
    budget: str | None  # such as "50.00/day"
    budget_alert: float | None  # the part of the budget, above 0 and up to 1, at which to raise the alarm
    retention_days: float | None  # how long its finished jobs are kept


OPTIONS: tuple[str, ...] = tuple(TenantOptions.__annotations__)
QUOTAS = ("waiting", "schedules", "bytes_per_day")


# --- the rule ------------------------------------------------------------------------------------


def tenant_name(name: Any) -> str:
    return name_text("tenant", name)


def changed(before: TenantRule, given: Mapping[str, Any]) -> TenantRule:
    """The rule with the given fields changed; OptionError names the field, the value and the remedy."""
    check_names(given)
    if not given:
        raise OptionError(f"nothing to change was given: name at least one of {', '.join(OPTIONS)}")
    values: dict[str, Any] = {}
    for name, value in given.items():
        values |= CLEARED[name] if value is None else _READ[name](name, value)
    after = msgspec.structs.replace(before, **values)
    if after.budget_alert is not None and after.budget is None:
        raise OptionError(
            f"budget_alert={after.budget_alert!r}: belongs to a budget; give budget='50.00/day' as well"
        )
    return after


def check_names(given: Iterable[str]) -> None:
    """OptionError for an option that tenants do not have."""
    for name in given:
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(OPTIONS)}"
            raise OptionError(f"a tenant has no option {name!r}; {hint}")


def is_same(one: TenantRule, other: TenantRule) -> bool:
    """Whether both say the same, whatever their versions."""
    return one == msgspec.structs.replace(other, version=one.version, updated_at=one.updated_at)


def read_budget(name: str, value: Any) -> tuple[float, Period]:
    """ "50.00/day" as cents and period: (5000.0, "day")."""
    match = _BUDGET.fullmatch(value) if isinstance(value, str) else None
    period = next((one for one in PERIODS if match is not None and match[3] == one), None)
    if match is None or period is None:
        shown = value[:40] if isinstance(value, str) else value
        without = isinstance(value, int | float) or (isinstance(value, str) and "/" not in value)
        cause = "has no period" if without else "is not a budget"
        raise OptionError(
            f"{name}={shown!r}: {cause}; write an amount per hour, day, week or month, such as '50.00/day'"
        )
    cents = int(match[1]) * 100 + int((match[2] or "0").ljust(2, "0"))
    if cents == 0:
        raise OptionError(f"{name}={value!r}: would let nothing begin; pause the tenant instead")
    if cents > MOST_CENTS:
        raise OptionError(f"{name}={value!r}: is out of range; up to {money(MOST_CENTS)} per period")
    return float(cents), period


def budget_text(rule: TenantRule) -> str | None:
    """The budget as it is written: "50.00/day"."""
    return None if rule.budget is None or rule.period is None else f"{money(rule.budget)}/{rule.period}"


def money(cents: float) -> str:
    """Cents as an amount: 5000 is "50.00"."""
    return f"{cents / 100:.2f}"


def _number(name: str, value: Any, remedy: str, high: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 < value <= high:
        raise OptionError(f"{name}={value!r}: must be {remedy}")
    return float(value)


def _whole(name: str, value: Any, low: int, high: int, remedy: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise OptionError(f"{name}={value!r}: must be a whole number from {low} to {high}{remedy}")
    return value


def _weight(name: str, value: Any) -> dict[str, Any]:
    remedy = f"a number above 0, up to {MOST_WEIGHT:,.0f}; to stop a tenant, pause it"
    return {name: _number(name, value, remedy, MOST_WEIGHT)}


def _priority(name: str, value: Any) -> dict[str, Any]:
    return {name: _whole(name, value, -PRIORITY_LIMIT, PRIORITY_LIMIT, "")}


def _quota(name: str, value: Any) -> dict[str, Any]:
    most = MOST_SCHEDULES if name == "schedules" else MOST_COUNT
    return {name: _whole(name, value, 0, most, "; None for no quota")}


def _budget(name: str, value: Any) -> dict[str, Any]:
    cents, period = read_budget(name, value)
    return {"budget": cents, "period": period}


def _alert(name: str, value: Any) -> dict[str, Any]:
    return {name: _number(name, value, "a part of the budget above 0 and up to 1, such as 0.8", 1.0)}


def _days(name: str, value: Any) -> dict[str, Any]:
    remedy = f"a number of days above 0, up to {MOST_DAYS:,.0f}"
    return {name: _number(name, value, remedy, MOST_DAYS)}


_READ: dict[str, Any] = {
    "weight": _weight,
    "max_priority": _priority,
    "waiting": _quota,
    "schedules": _quota,
    "bytes_per_day": _quota,
    "budget": _budget,
    "budget_alert": _alert,
    "retention_days": _days,
}
CLEARED: dict[str, dict[str, Any]] = {
    **{name: {name: None} for name in OPTIONS},
    "weight": {"weight": 1.0},
    "budget": {"budget": None, "period": None, "budget_alert": None},
}


# --- spending ------------------------------------------------------------------------------------


class SpendingRows(NamedTuple):
    """Which rows of a tenant's spending make up a period: those of this unit that begin then or later."""

    unit: str
    since: datetime


def spending_rows(period: Period | None, now: datetime) -> SpendingRows:
    """A week is the sum of its days. Without a period: today."""
    unit = {"hour": "hour", "month": "month"}.get(period or "day", "day")
    return SpendingRows(unit, period_begins(period or "day", now))


# --- budgets -------------------------------------------------------------------------------------


def level(rule: TenantRule, spent: float) -> BudgetLevel | None:
    """How far the tenant has come with its budget: past the alert, at its end, or neither."""
    if rule.budget is None or spent <= 0:
        return None
    if spent >= rule.budget:
        return "reached"
    at = rule.budget_alert
    return "alert" if at is not None and spent >= rule.budget * at else None


LEVELS: tuple[BudgetLevel, ...] = get_args(BudgetLevel)


def is_further(one: BudgetLevel, before: BudgetLevel | None) -> bool:
    return before is None or LEVELS.index(one) > LEVELS.index(before)


# --- at enqueue ----------------------------------------------------------------------------------


def governed(job: NewJob, rule: TenantRule | None) -> NewJob:
    """The job as its tenant's rule lets it be stored: not above its priority, kept for no longer."""
    if rule is None:
        return job
    if rule.max_priority is not None and job.priority > rule.max_priority:
        job = msgspec.structs.replace(job, priority=rule.max_priority)
    if rule.retention_days is not None and job.keep is None:
        job = msgspec.structs.replace(job, keep=min(rule.retention_days * DAY_S, FOREVER))
    return job


class Wanted(NamedTuple):
    """What a call would add for one tenant."""

    jobs: int = 0
    bytes: int = 0
    schedules: int = 0


def check_quota(rule: TenantRule, use: TenantUse, wanted: Wanted) -> None:
    """QuotaExceeded names the tenant, the quota, what is in use, and the remedy."""
    for quota, used, more, unit in (
        ("waiting", use.waiting, wanted.jobs, "waiting jobs"),
        ("bytes_per_day", use.bytes_today, wanted.bytes, "bytes of payloads a day"),
        ("schedules", use.schedules, wanted.schedules, "schedules"),
    ):
        most = getattr(rule, quota)
        if most is None or more == 0 or used + more <= most:
            continue
        remedies = {
            "waiting": "wait until some have run, or raise",
            "bytes_per_day": "wait until midnight UTC, or raise",
            "schedules": "delete some, or raise",
        }
        raise QuotaExceeded(
            f"tenant {rule.name!r} may have {most:,} {unit}, has {used:,}, and this would add {more:,}: "
            f"{remedies[quota]} its quota {quota!r}",
            tenant=rule.name,
            quota=quota,
        )
