"""Times as users type them: a duration, a date and time, or how long ago."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import click

from ... import durations

C = TypeVar("C", bound=Callable[..., Any])

LONGEST_AGO_S = 50 * 365 * 86_400


def parse_duration(value: str) -> float:
    """Seconds."""
    if (found := durations.read(value)) is None:
        raise click.BadParameter(f"{value!r} is not a duration; use seconds, or 90s, 15m, 1h30m, 2d")
    return found


def parse_time(value: str) -> datetime:
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a date and time; use 2030-01-31T08:00:00Z") from None
    if at.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no time zone; add Z or an offset such as +02:00")
    return at


def parse_expiry(value: str) -> float | datetime:
    """Seconds, or a date and time."""
    try:
        return parse_duration(value)
    except click.BadParameter:
        pass
    try:
        return parse_time(value)
    except click.BadParameter:
        raise click.BadParameter(
            f"{value!r} is neither a duration (90s, 15m, 2h) nor a date and time (2030-01-31T08:00Z)"
        ) from None


def parse_when(value: str) -> datetime | timedelta:
    """A date and time, or how long ago."""
    try:
        if (ago := parse_duration(value)) <= LONGEST_AGO_S:
            return timedelta(seconds=ago)
    except click.BadParameter:
        pass
    try:
        return parse_time(value)
    except click.BadParameter:
        raise click.BadParameter(
            f"{value!r} is not a time; use how long ago (90s, 15m, 2h, 7d) or a date and time "
            "(2030-01-31T08:00Z)"
        ) from None


def resolve_when(value: str, now: datetime) -> datetime:
    """The time that was typed, counted back from ``now`` if it says how long ago."""
    when = parse_when(value)
    if isinstance(when, datetime):
        return when
    try:
        return now - when
    except OverflowError:
        raise click.UsageError(f"{value!r} is too far in the past") from None


def when_option(name: str, text: str) -> Callable[[C], C]:
    """An option for a time. The text stays as typed: the store's time is not known yet."""
    return click.option(
        f"--{name}", callback=_checked, metavar="TIME",
        help=f"{text} this time: 2h (ago), or 2030-01-31T08:00Z.",
    )  # fmt: skip


def _checked(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        parse_when(value)
    return value
