"""One schedule with everything known about it: gathered once, rendered as data or as text.

A row that was damaged by hand is shown like any other, with the error in place of its rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ...core.plurals import plural
from ...durations import short
from ...errors import InvalidSchedule, NotFound
from ...model import Value
from ...operate import Operations
from ...operate.requests import PreviewRequest, RunsRequest, SummaryRequest, TenantRequest
from ...operate.views import FireView, GateView, ScheduleView
from ...schedules.runs import RunSummary, ScheduleRun
from ...terminal.schedules import local_time, next_run
from ...terminal.text import json_text, relative_time, safe, short_duration, state, style, utc_time
from .detail import block, fact_lines, section, warning
from .target import store_time

SHOWN = 5


class ScheduleDetail(Value, frozen=True, kw_only=True):
    schedule: ScheduleView
    fires: Sequence[FireView]
    runs: Sequence[ScheduleRun]
    summary: RunSummary
    now: datetime
    hindrance: str | None = None  # why its next fire times are unknown


async def gather(operations: Operations, name: str, tenant: str | None) -> ScheduleDetail:
    schedule = await operations.schedules.show(name, TenantRequest(tenant=tenant))
    id = schedule.id
    fires: Sequence[FireView] = ()
    hindrance = None
    try:
        fires = (await operations.schedules.preview(id, PreviewRequest(n=SHOWN))).fires
    except (InvalidSchedule, NotFound) as error:
        hindrance = str(error)
    return ScheduleDetail(
        schedule=schedule,
        fires=fires,
        runs=(await operations.schedules.runs_of(id, RunsRequest(limit=SHOWN))).items,
        summary=await operations.schedules.summary(id, SummaryRequest()),
        now=await store_time(operations),
        hindrance=hindrance,
    )


def as_plain(detail: ScheduleDetail) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(detail)
    return {**plain.pop("schedule"), **{name: value for name, value in plain.items() if name != "now"}}


# --- in one line ---------------------------------------------------------------------------------


def paused_by(gate: GateView) -> str:
    until = f", until {utc_time(gate.until_at)}" if gate.until_at is not None else ""
    return f"by {gate.actor}{': ' if gate.reason else ''}{gate.reason}{until}"


def last_run(run: ScheduleRun | None, now: datetime) -> str:
    if run is None:
        return "–"
    return f"{state(run.state)} {relative_time(run.finished_at or run.started_at or run.scheduled_for, now)}"


def run_duration(run: ScheduleRun) -> str:
    return short_duration(run.duration_ms / 1000) if run.duration_ms is not None else ""


def success_rate(summary: RunSummary) -> str:
    rate = summary.success_rate_percent
    return "–" if rate is None else f"{rate:g} %"


def summary_line(summary: RunSummary) -> str:
    days = plural(summary.window_days, "day")
    if not summary.runs:
        return f"no runs in the last {days}"
    finished = summary.succeeded + summary.failed
    rate = f"{success_rate(summary)} of {finished} succeeded" if finished else "none finished"
    took = ""
    if summary.average_ms is not None and summary.longest_ms is not None:
        average, longest = (short_duration(ms / 1000) for ms in (summary.average_ms, summary.longest_ms))
        took = f", {average} on average, {longest} at most"
    return f"{plural(summary.runs, 'run')} in the last {days}: {rate}{took}"


# --- as text -------------------------------------------------------------------------------------


def as_text(detail: ScheduleDetail) -> str:
    schedule = detail.schedule
    label = "enabled" if schedule.enabled else "disabled"
    parts = [
        f"{state(label)}  {style(safe(schedule.name), bold=True)}  {safe(schedule.rule_summary)}",
        *fact_lines(_facts(schedule, detail.now)),
        *warning(detail.hindrance),
        *block("Payload", json_text(schedule.payload, indent=2)),
        *_fires(detail),
        *section("Runs", (_run(run, schedule.timezone) for run in detail.runs), summary_line(detail.summary)),
    ]
    return "\n".join(parts)


def _facts(schedule: ScheduleView, now: datetime) -> list[tuple[str, Any]]:
    return [
        ("task", schedule.task),
        ("tenant", schedule.tenant),
        ("off because", schedule.reason if not schedule.enabled else None),
        ("paused", schedule.gate and paused_by(schedule.gate)),
        ("rule", _rule(schedule)),
        ("time zone", schedule.timezone),
        ("next run", next_run(schedule, now)),
        ("last fire", schedule.last_fire_at and relative_time(schedule.last_fire_at, now)),
        ("jitter", f"up to {short(schedule.jitter)}" if schedule.jitter else None),
        ("missed", _missed(schedule)),
        ("overlap", schedule.overlap),
        ("calendar", schedule.calendar and f"{schedule.calendar} ({schedule.calendar_mode})"),
        ("queue", schedule.queue),
        ("priority", schedule.priority),
        ("max attempts", schedule.max_attempts),
        ("timeout", short(schedule.timeout) if schedule.timeout else None),
        ("source", _source(schedule)),
        ("description", schedule.description),
        ("updated", f"{relative_time(schedule.updated_at, now)}  ({utc_time(schedule.updated_at)})"),
    ]


def _rule(schedule: ScheduleView) -> str:
    if schedule.cron is not None:
        return f"cron {schedule.cron}"
    if schedule.every is not None:
        return f"every {short(schedule.every)}"
    return f"at {utc_time(schedule.at)}" if schedule.at is not None else "none"


def _missed(schedule: ScheduleView) -> str:
    if schedule.missed == "skip":
        return "skip"
    window = f", none older than {short(schedule.missed_window)}" if schedule.missed_window else ""
    cap = f", at most {schedule.missed_cap}" if schedule.missed == "all" else ""
    return f"{schedule.missed}{cap}{window}"


def _source(schedule: ScheduleView) -> str:
    sources = {
        "code": f"the code of {schedule.owner}",
        "registry": "app.register",
        "sql": "SQL",
        "user": "a user",
    }
    return sources.get(schedule.source, schedule.source)


def _fires(detail: ScheduleDetail) -> list[str]:
    if not detail.fires:
        return []
    title = "Next runs" if detail.schedule.enabled else "Next runs, once enabled"
    return section(title, (_fire(fire, detail) for fire in detail.fires))


def _fire(fire: FireView, detail: ScheduleDetail) -> str:
    at = local_time(fire.at, detail.schedule.timezone)
    return f"  {at}  {relative_time(fire.at, detail.now):<10}  {safe(fire.note or '')}"


def _run(run: ScheduleRun, timezone: str) -> str:
    due = local_time(run.scheduled_for, timezone) if run.scheduled_for else ""
    took = f"took {run_duration(run)}" if run.duration_ms is not None else ""
    parts = (run.job, state(run.state), due, run.triggered_by, took, safe(run.message or ""))
    return "  " + "  ".join(filter(None, parts))
