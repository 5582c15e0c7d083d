"""Times as one types them: a length, an instant, or how long ago."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import click

DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+(?:\.\d+)?)s)?")
SIZES = (86_400, 3_600, 60, 1)
LONGEST_AGO_S = 50 * 365 * 86_400


def parse_duration(value: str) -> float:
    text = value.strip().lower().replace(" ", "")
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    match = DURATION.fullmatch(text)
    if not text or match is None:
        raise click.BadParameter(f"{value!r} is not a duration: write seconds, or 90s, 15m, 1h30m, 2d")
    return sum(float(n) * size for n, size in zip(match.groups(), SIZES, strict=True) if n)


def parse_time(value: str) -> datetime:
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not an ISO instant: write 2030-01-31T08:00:00Z") from None
    if at.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no time zone: add Z or an offset such as +02:00")
    return at


def parse_when(value: str) -> datetime | timedelta:
    """An instant, or how long ago."""
    try:
        if (ago := parse_duration(value)) <= LONGEST_AGO_S:
            return timedelta(seconds=ago)
    except click.BadParameter:
        pass
    try:
        return parse_time(value)
    except click.BadParameter:
        raise click.BadParameter(
            f"{value!r} is no time: write how long ago as 90s, 15m, 2h, 7d, or an instant as "
            "2030-01-31T08:00Z"
        ) from None
