"""One tenant as text: what it has, and what it may."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...core.tenants import money
from ...operate.views import BudgetView, QuotaView, TenantView
from ...terminal.text import relative_time, safe, short_duration, style, utc_time
from .detail import fact_lines, section
from .pause_options import pause_summary

QUOTA_NAMES = {"waiting": "waiting jobs", "schedules": "schedules", "bytes_per_day": "bytes per day"}


def tenant_text(tenant: TenantView, now: datetime) -> str:
    parts = [
        style(safe(tenant.name), bold=True),
        *fact_lines(_facts(tenant, now)),
        *section(
            "Quotas", fact_lines((QUOTA_NAMES.get(q.name, q.name), quota_text(q)) for q in tenant.quotas)
        ),
    ]
    if tenant.budget is not None:
        parts += section("Budget", fact_lines(_budget(tenant.budget, now)))
    return "\n".join(parts)


def _facts(tenant: TenantView, now: datetime) -> list[tuple[str, Any]]:
    about = "≈" if tenant.estimated else ""
    return [
        ("paused", tenant.gate and pause_summary(tenant.gate, now)),
        ("waiting", f"{about}{tenant.waiting:,}"),
        ("due", f"{about}{tenant.due:,}"),
        ("oldest due", None if tenant.oldest_due_s is None else short_duration(tenant.oldest_due_s)),
        ("running", f"{about}{tenant.running:,}"),
        ("newest jobs", f"{tenant.done:,} succeeded, {tenant.failed:,} failed"),
        ("weight", f"{tenant.weight:g}"),
        ("share now", None if tenant.share is None else f"{tenant.share:.1%}"),
        ("limit", limit_text(tenant)),
        ("max priority", tenant.max_priority),
        ("kept for", None if tenant.retention_days is None else f"{tenant.retention_days:g} days"),
        ("spent today", money(tenant.spent_cents) if tenant.budget is None else None),
    ]


def limit_text(tenant: TenantView) -> str | None:
    if tenant.limit is None:
        return None
    held = tenant.limit
    most = None if held.most is None else f"{held.running:,} of {held.most:,} running"
    return ", ".join(part for part in (most, held.rate) if part)


def quota_text(quota: QuotaView) -> str:
    return f"{quota.used:,}" if quota.most is None else f"{quota.used:,} of {quota.most:,}"


def budget_text(budget: BudgetView | None) -> str:
    """``41.20 of 50.00/day``."""
    return "–" if budget is None else f"{money(budget.spent)} of {budget.budget}"


def _budget(budget: BudgetView, now: datetime) -> list[tuple[str, Any]]:
    words = {"alert": "past the alert", "reached": "reached: nothing begins until then"}
    return [
        ("spent", budget_text(budget)),
        ("reserved", money(budget.reserved) if budget.reserved else None),
        ("alert at", None if budget.alert is None else f"{budget.alert:.0%}"),
        ("state", words.get(budget.level or "")),
        ("starts again", f"{utc_time(budget.ends_at)} ({relative_time(budget.ends_at, now)})"),
    ]
