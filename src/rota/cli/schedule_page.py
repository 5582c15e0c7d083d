"""One schedule with all that is known about it: gathered once, told as plain data or as a page of text.

A row that somebody broke by hand is shown like any other, with what is wrong in place of its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..core.schedules.describe import summary
from ..core.schedules.firing import rule_of
from ..core.schedules.intervals import short
from ..core.schedules.zones import zone
from ..errors import InvalidSchedule, NotFound
from ..model import Schedule, State, Value
from ..operate import Operations
from ..operate.requests import PreviewRequest, RunsRequest, TenantRequest
from ..operate.views import FireView, GateView, ScheduleView
from ..schedules.runs import RunSummary, ScheduleRun
from .job_page import as_block
from .target import now_of
from .text import exact, json_text, plural, safe, span, state, style, when

SHOWN = 5
DAYS = 7.0


class SchedulePage(Value, frozen=True, kw_only=True):
    schedule: ScheduleView
    fires: Sequence[FireView]
    runs: Sequence[ScheduleRun]
    summary: RunSummary
    now: datetime
    hindrance: str | None = None  # why its fires are not known


async def gather(operations: Operations, name: str, tenant: str) -> SchedulePage:
    which = TenantRequest(tenant=tenant)
    schedule = await operations.schedules.show(name, which)
    fires: Sequence[FireView] = ()
    hindrance = None
    try:
        fires = (await operations.schedules.preview(name, PreviewRequest(tenant=tenant, n=SHOWN))).fires
    except (InvalidSchedule, NotFound) as error:
        hindrance = str(error)
    return SchedulePage(
        schedule=schedule,
        fires=fires,
        runs=(await operations.schedules.runs_of(name, RunsRequest(tenant=tenant, limit=SHOWN))).items,
        summary=await operations.schedules.summary(name, which),
        now=await now_of(operations),
        hindrance=hindrance,
    )


def as_plain(page: SchedulePage) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(page)
    return {**told.pop("schedule"), **{name: value for name, value in told.items() if name != "now"}}


# --- as words ------------------------------------------------------------------------------------


def in_words(schedule: Schedule) -> str:
    """The rule of a schedule that comes from the store, not from the desk."""
    try:
        return summary(rule_of(schedule))
    except InvalidSchedule as error:
        return f"cannot be read: {error}"


def local(instant: datetime, timezone: str) -> str:
    """The exact time in the schedule's own zone."""
    try:
        there = instant.astimezone(zone(timezone))
    except InvalidSchedule:
        there = instant.astimezone(UTC)
    clock = "%H:%M:%S" if there.second else "%H:%M"
    return there.strftime(f"%Y-%m-%d {clock} %Z")


def next_run(schedule: Schedule | ScheduleView, now: datetime) -> str:
    if not schedule.enabled:
        return "off"
    if schedule.next_run_at is None:
        return "–"
    return f"{when(schedule.next_run_at, now)}, {local(schedule.next_run_at, schedule.timezone)}"


def paused(gate: GateView) -> str:
    until = f", until {exact(gate.until_at)}" if gate.until_at is not None else ""
    return f"by {gate.actor}{': ' if gate.reason else ''}{gate.reason}{until}"


def outcome(run: ScheduleRun) -> str:
    """The state of a run; one whose task said that it did not succeed has failed."""
    return state("failed" if run.success is False and run.state is State.SUCCEEDED else run.state)


def last_run(run: ScheduleRun | None, now: datetime) -> str:
    if run is None:
        return "–"
    return f"{outcome(run)} {when(run.finished_at or run.started_at or run.scheduled_for, now)}"


def summed_up(summary: RunSummary, days: float) -> str:
    if not summary.runs:
        return f"no runs in the last {days:g} days"
    ended = summary.succeeded + summary.failed
    rate = f"{summary.success_rate_percent:g} % of {ended} succeeded" if ended else "none has ended"
    took = ""
    if summary.average_ms is not None and summary.longest_ms is not None:
        took = f", {span(summary.average_ms / 1000)} on average, {span(summary.longest_ms / 1000)} at most"
    return f"{plural(summary.runs, 'run')} in the last {days:g} days: {rate}{took}"


# --- as text -------------------------------------------------------------------------------------


def as_text(page: SchedulePage) -> str:
    schedule = page.schedule
    label = "enabled" if schedule.enabled else "disabled"
    parts = [
        f"{state(label)}  {style(safe(schedule.name), bold=True)}  {safe(schedule.words)}",
        *_facts(page),
        *([f"\n  {style('! ' + safe(page.hindrance), 'yellow')}"] if page.hindrance else []),
        *(as_block("Payload", json_text(schedule.payload, indent=2))),
        *_fires(page),
        *_runs(page),
    ]
    return "\n".join(parts)


def _facts(page: SchedulePage) -> list[str]:
    schedule, now = page.schedule, page.now
    facts: list[tuple[str, Any]] = [
        ("task", schedule.task),
        ("tenant", schedule.tenant),
        ("off because", schedule.reason if not schedule.enabled else None),
        ("paused", schedule.gate and paused(schedule.gate)),
        ("rule", _rule(schedule)),
        ("time zone", schedule.timezone),
        ("next run", next_run(schedule, now)),
        ("last fire", schedule.last_fire_at and f"{when(schedule.last_fire_at, now)}"),
        ("jitter", schedule.jitter and f"up to {short(schedule.jitter)}"),
        ("missed", _missed(schedule)),
        ("overlap", schedule.overlap),
        ("calendar", schedule.calendar and f"{schedule.calendar} ({schedule.calendar_mode})"),
        ("queue", schedule.queue),
        ("priority", schedule.priority),
        ("max attempts", schedule.max_attempts),
        ("timeout", schedule.timeout and short(schedule.timeout)),
        ("made by", _maker(schedule)),
        ("description", schedule.description),
        ("updated", f"{when(schedule.updated_at, now)}  ({exact(schedule.updated_at)})"),
    ]
    return [
        f"  {name:<15}{safe(value)}" for name, value in facts if value or (value == 0 and name == "priority")
    ]


def _rule(schedule: ScheduleView) -> str:
    if schedule.cron is not None:
        return f"cron {schedule.cron}"
    if schedule.every is not None:
        return f"every {short(schedule.every)}"
    return f"at {exact(schedule.at)}" if schedule.at is not None else "none"


def _missed(schedule: ScheduleView) -> str:
    if schedule.missed == "skip":
        return "skip"
    window = f", none older than {short(schedule.missed_window)}" if schedule.missed_window else ""
    cap = f", at most {schedule.missed_cap}" if schedule.missed == "all" else ""
    return f"{schedule.missed}{cap}{window}"


def _maker(schedule: ScheduleView) -> str:
    made = {"code": f"the code of {schedule.owner}", "registry": "app.register", "sql": "SQL", "user": "hand"}
    return made.get(schedule.source, schedule.source)


def _fires(page: SchedulePage) -> list[str]:
    if not page.fires:
        return []
    title = "Next fires" if page.schedule.enabled else "Next fires, if it were enabled"
    lines = [
        f"  {local(fire.at, page.schedule.timezone)}  {when(fire.at, page.now):<10}  {safe(fire.note or '')}"
        for fire in page.fires
    ]
    return [f"\n{style(title, bold=True)}", *(line.rstrip() for line in lines)]


def _runs(page: SchedulePage) -> list[str]:
    title = f"\n{style('Runs', bold=True)}  {summed_up(page.summary, DAYS)}"
    return [title, *(f"  {run.job}  {run_line(run, page)}".rstrip() for run in page.runs)]


def run_line(run: ScheduleRun, page: SchedulePage) -> str:
    due = local(run.scheduled_for, page.schedule.timezone) if run.scheduled_for else ""
    took = f"took {span(run.duration_ms / 1000)}" if run.duration_ms is not None else ""
    return "  ".join(filter(None, (outcome(run), due, run.triggered_by, took, safe(run.message or ""))))
