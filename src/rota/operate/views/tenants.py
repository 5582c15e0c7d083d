"""Views of tenants: what they have, what they use, and what they may."""

from __future__ import annotations

from datetime import datetime

from ...core.jobs.periods import period_begins, period_ends
from ...core.tenants import BudgetLevel, budget_text, level
from ...model import Held, Period, TenantRule, TenantUse
from .base import Timestamp, View
from .gates import GateView


class BudgetView(View, frozen=True, kw_only=True):
    """A tenant's budget, and what it has spent in the period that runs now; amounts in cents."""

    budget: str  # as it is written: 50.00/day
    cents: float
    period: Period
    spent: float
    reserved: float  # prices of what runs now
    alert: float | None  # the part of the budget at which an alert is raised
    level: BudgetLevel | None  # alert: past the alert; reached: nothing begins until the period ends
    starts_at: Timestamp
    ends_at: Timestamp


class QuotaView(View, frozen=True, kw_only=True):
    """How much of something a tenant has, and how much it may have."""

    name: str  # waiting, schedules, bytes_per_day
    used: int
    most: int | None  # None: no quota


class TenantLimitView(View, frozen=True, kw_only=True):
    """What is in use of the limit ``tenant:NAME``."""

    name: str
    running: int
    most: int | None
    rate: str | None
    burst: int | None
    tokens: float | None
    next_token_at: Timestamp | None


class TenantView(View, frozen=True, kw_only=True):
    """A tenant: its live jobs, schedules and cost, its share, limit, quotas and budget."""

    name: str
    due: int
    due_later: int
    running: int
    oldest_due_s: float | None
    schedules: int
    cost_cents: float  # of the newest jobs
    estimated: bool
    gate: GateView | None
    waiting: int  # due now or later
    done: int  # of the newest jobs, those that have succeeded
    failed: int  # of the newest jobs
    weight: float
    share: float | None  # of the work of all tenants that have due jobs now; None: it has none
    max_priority: int | None
    limit: TenantLimitView | None
    quotas: tuple[QuotaView, ...]
    spent_cents: float  # in the period of its budget; without one: since midnight UTC
    budget: BudgetView | None
    retention_days: float | None
    updated_at: Timestamp | None  # when its rule was last changed; None: it has none


def budget_view(rule: TenantRule, use: TenantUse, now: datetime) -> BudgetView | None:
    written = budget_text(rule)
    if written is None or rule.budget is None or rule.period is None:
        return None
    return BudgetView(
        budget=written,
        cents=rule.budget,
        period=rule.period,
        spent=use.spent,
        reserved=use.reserved,
        alert=rule.budget_alert,
        level=level(rule, use.spent),
        starts_at=period_begins(rule.period, now),
        ends_at=period_ends(rule.period, now),
    )


def quota_views(rule: TenantRule, use: TenantUse) -> tuple[QuotaView, ...]:
    return (
        QuotaView(name="waiting", used=use.waiting, most=rule.waiting),
        QuotaView(name="schedules", used=use.schedules, most=rule.schedules),
        QuotaView(name="bytes_per_day", used=use.bytes_today, most=rule.bytes_per_day),
    )


def tenant_limit_view(held: Held) -> TenantLimitView:
    return TenantLimitView(**{name: getattr(held, name) for name in TenantLimitView.__struct_fields__})
