"""The periods of budgets, in UTC: when one begins and ends. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ...model import Period


def period_begins(period: Period, at: datetime) -> datetime:
    """When the period that ``at`` lies in has begun; a week begins on Monday."""
    hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if period == "hour":
        return hour
    day = hour.replace(hour=0)
    if period == "day":
        return day
    return day - timedelta(days=day.weekday()) if period == "week" else day.replace(day=1)


def period_ends(period: Period, at: datetime) -> datetime:
    """When the next one begins."""
    begins = period_begins(period, at)
    if period == "month":
        return (begins + timedelta(days=31)).replace(day=1)
    return begins + {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}[period]
