"""One limit as text: how full it is, what the code says, and the jobs that hold it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...operate.views import HolderView, LimitView
from ...operate.views.limits import DeclaredLimitView
from ...terminal.text import relative_time, safe, short_duration, style
from .detail import fact_lines, section

BAR = 10  # characters


def fill_text(limit: LimitView) -> str:
    """``████████░░ 38 of 40``; for a family, of each key at most."""
    if limit.most is None:
        return f"{limit.running:,}"
    if limit.scope == "family":
        fullest = max((key.running for key in limit.keys), default=0)
        return f"{bar(fullest, limit.most)} {limit.running:,}, {limit.most:,} each"
    return f"{bar(limit.running, limit.most)} {limit.running:,} of {limit.most:,}"


def bar(part: float, whole: float) -> str:
    """Full only if it is full, and empty only if it is empty."""
    filled = min(BAR, int(part / whole * BAR))
    if part > 0:
        filled = max(filled, 1)
    return "█" * filled + "░" * (BAR - filled)


def tokens_text(limit: LimitView) -> str:
    if limit.tokens is None or limit.burst is None:
        return "–"
    return f"{int(limit.tokens):,} of {limit.burst:,}"


def next_text(limit: LimitView, now: datetime) -> str:
    if limit.next_token_at is None:
        return "–" if limit.tokens is None else "now"
    return relative_time(limit.next_token_at, now)


def source_text(limit: LimitView) -> str:
    if limit.source == "code":
        return "code"
    return "run time" if limit.declared is None else f"run time (code: {declared_text(limit.declared)})"


def declared_text(limit: DeclaredLimitView) -> str:
    running = None if limit.running is None else f"{limit.running:,} running"
    burst = "" if limit.burst is None else f" burst {limit.burst:,}"
    rate = None if limit.rate is None else f"{safe(limit.rate)}{burst}"
    return ", ".join(part for part in (running, rate) if part)


def limit_text(limit: LimitView, now: datetime) -> str:
    parts = [style(safe(limit.name), bold=True), *fact_lines(_facts(limit, now))]
    if limit.keys:
        parts += section("Fullest keys", (f"  {safe(key.name):<30} {_key(key)}" for key in limit.keys))
    if limit.holders:
        parts += section("Held by", (_holder(one, now) for one in limit.holders))
        if len(limit.holders) < limit.running:
            parts.append(f"  and {limit.running - len(limit.holders):,} more")
    return "\n".join(parts)


def _facts(limit: LimitView, now: datetime) -> list[tuple[str, Any]]:
    return [
        ("rule", limit.rule if limit.rule != limit.name else None),
        ("running", fill_text(limit)),
        ("rate", limit.rate),
        ("burst", None if limit.burst is None else f"{limit.burst:,}"),
        ("left now", None if limit.tokens is None else tokens_text(limit)),
        ("next unit", None if limit.next_token_at is None else next_text(limit, now)),
        ("strict", "a retry holds up its key" if limit.strict else None),
        ("waiting lanes", f"{limit.waiting_lanes:,}" if limit.waiting_lanes else None),
        ("set by", source_text(limit)),
    ]


def _key(key: LimitView) -> str:
    return fill_text(key) if key.tokens is None else f"{fill_text(key)}, {tokens_text(key)} left"


def _holder(holder: HolderView, now: datetime) -> str:
    since = None if holder.started_at is None else (now - holder.started_at).total_seconds()
    return f"  {holder.id}  {safe(holder.task)} on {safe(holder.worker or '–')} for {short_duration(since)}"
