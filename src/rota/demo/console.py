"""The output of the demo: a header, a line per event, a summary every few seconds."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from ..app import Rota
from ..core.plurals import plural
from ..model import Job, Schedule
from ..runtime.events import Event
from ..tasks.handle import JobHandle
from ..terminal.schedules import describe_rule, next_run
from ..terminal.table import cut
from ..terminal.text import STATE_STYLES, on_terminal, safe, short_duration, style

NOTE_COLUMN = 62  # the cell of a line where its note starts
SHOW_START = ("demo.report", "demo.primes")
KINDS = {
    "demo.greet": "quick, async",
    "demo.report": "slow, with progress",
    "demo.flaky": "flaky, retried",
    "demo.failing": "always fails",
    "demo.contact": "limited, with rate",
    "demo.account": "one per account",
    "demo.draw": "within a budget",
    "demo.reminder": "deferred",
    "demo.primes": "in a process",
    "demo.fingerprint": "in a thread",
    "demo.refresh": "one per key",
    "demo.sweep": "removes itself",
    "demo.newsletter": "cancels itself",
    "demo.heartbeat": "recurring, every",
    "demo.digest": "recurring, cron",
}


class DemoConsole:
    """Prints and counts the events of the sample tasks."""

    def __init__(self, app: Rota, *, quiet: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._app = app
        self._quiet = quiet

    def listen(self) -> None:
        for name in ("started", "succeeded", "retried", "failed", "cancelled", "released", "rescued"):
            self._app.on(f"job.{name}")(self._job_event)
        self._app.on("schedule.fired")(self._fired)

    def planned(self, schedule: Schedule) -> None:
        """Print a schedule and its next run."""
        now = self._app.clock.now()
        self._line(
            now, "planned", schedule.task, f"{describe_rule(schedule)}; next {next_run(schedule, now)}"
        )

    async def enqueued(self, job: JobHandle, existed: bool) -> None:
        """Print a job that is due later, or that existed before."""
        if existed:
            note = f"enqueued again: key {job.key} is taken, no second job"
            self._line(self._app.clock.now(), "queued", job.task, note)
        elif job.run_at > job.created_at:
            note = f"due in {short_duration((job.run_at - job.created_at).total_seconds())}"
            self._line(job.created_at, "queued", job.task, note)

    async def _fired(self, event: Event) -> None:
        assert event.job is not None
        self.counts["fired"] += 1
        self._line(event.at, "fired", event.job.task, f"by schedule {event.schedule}")

    async def _job_event(self, event: Event) -> None:
        assert event.job is not None
        name = event.name.removeprefix("job.")
        self.counts[name] += 1
        if name == "started":
            if event.job.task in SHOW_START:
                self._line(event.at, "running", event.job.task, "")
        elif name in STATE_STYLES:
            self._line(event.at, name, event.job.task, _outcome(event, event.job))

    def _line(self, at: datetime, event: str, task: str, note: str) -> None:
        if self._quiet:
            return
        glyph, colour = STATE_STYLES[event]
        kind = style(f"{KINDS.get(task, ''):<20}", dim=True)
        state = style(f"{glyph} {event:<9}", colour)
        if on_terminal():
            note = cut(safe(note), max(shutil.get_terminal_size().columns - NOTE_COLUMN, 1))
        click.echo(f"{at.astimezone():%H:%M:%S}  {state}  {safe(task):<17} {kind} {safe(note)}".rstrip())


def _outcome(event: Event, job: Job) -> str:
    error = job.error or {}
    cause = f"{error.get('type')}: {error.get('message')}"
    match event.name:
        case "job.succeeded":
            took = short_duration((event.at - (job.started_at or event.at)).total_seconds())
            return f"in {took}" + (f"  → {job.output_json}" if job.output_json not in (None, "null") else "")
        case "job.retried":
            return f"attempt {job.attempt} of {job.max_attempts}: {cause}"
        case "job.failed":
            return f"after {plural(job.attempt, 'attempt')}: {cause}"
        case _:
            return str(error.get("message", ""))


def header(url: str, entries: Sequence[tuple[str, str]] = ()) -> str:
    at = command(url)
    rows = (
        ("jobs", f"{at} jobs list"),
        ("one job", f"{at} jobs show ID"),
        ("schedules", f"{at} schedules list"),
        ("limits", f"{at} limits list"),
        ("tenants", f"{at} tenants list"),
        ("workers", f"{at} workers list"),
        ("counts", f"{at} stats"),
        ("live view", f"{at} top"),
    )
    return "\n".join(
        (
            style("rota demo", bold=True) + ": a store, a worker, an API and sample tasks.",
            f"Store: {safe(url)}",
            *(f"  {label:<13}{style(safe(text), 'cyan')}" for label, text in entries),
            "Try these in another terminal:",
            *(f"  {label:<13}{style(text, 'cyan')}" for label, text in rows),
            "Ctrl-C stops after running jobs finish.",
            "",
        )
    )


def command(url: str) -> str:
    """How to call rota from another terminal, also where it is not on the path, as after ``make run``."""
    if shutil.which("rota"):
        program = "rota"
    else:
        beside = Path(sys.executable).with_name("rota")
        near = beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside
        program = shlex.quote(str(near)) if beside.exists() else f"{shlex.quote(sys.executable)} -m rota"
    return f"{program} --url {shlex.quote(url)}"


def summary(stats: Mapping[str, Any], running: list[Job]) -> str:
    depth = sum(q["due_later"] for q in stats["queues"].values())
    parts = [
        f"{stats['succeeded']} succeeded",
        f"{stats['failed']} failed",
        f"{stats['cancelled']} cancelled",
        f"{stats['running']} running",
        f"{stats['queued']} queued" + (f" ({depth} due later)" if depth else ""),
    ]
    progress = [
        f"{safe(j.task)} {j.progress['percent']:.0f}%"
        for j in running
        if j.progress and j.progress.get("percent") is not None
    ]
    line = " · ".join(parts + progress)
    return style(f"{'──' if on_terminal() else '--'} {line}", bold=True)


def closing(counts: Mapping[str, int], url: str, is_kept: bool) -> str:
    done = ", ".join(f"{counts[state]} {state}" for state in ("succeeded", "retried", "failed", "cancelled"))
    where = f"\nThe jobs are still stored: {command(url)} jobs list --state failed" if is_kept else ""
    return f"\n{style('Stopped.', bold=True)} {done}.{where}"
