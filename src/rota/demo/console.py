"""What the demo says: a header, a line for what is worth seeing, a summary now and then."""

from __future__ import annotations

import shlex
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from ..app import Rota
from ..cli.parts.schedule_detail import in_words, next_run
from ..model import Job, Schedule
from ..runtime.events import Event
from ..tasks.handle import JobHandle
from ..terminal import table
from ..terminal.text import STATE_STYLES, on_terminal, safe, short_duration, style

BEFORE_NOTE = 62  # cells of a line that come before its note
WORTH_A_START = ("demo.report", "demo.primes")
KINDS = {
    "demo.greet": "quick, async",
    "demo.report": "slow, with progress",
    "demo.flaky": "flaky, retried",
    "demo.failing": "fails for good",
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
    """Prints what happens to the samples, and counts it."""

    def __init__(self, app: Rota, *, quiet: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._app = app
        self._quiet = quiet

    def listen(self) -> None:
        for name in ("started", "succeeded", "retried", "failed", "cancelled", "released", "rescued"):
            self._app.on(f"job.{name}")(self._happened)
        self._app.on("schedule.fired")(self._fired)

    def planned(self, schedule: Schedule) -> None:
        now = self._app.clock.now()
        self._line(now, "planned", schedule.task, f"{in_words(schedule)}; next {next_run(schedule, now)}")

    async def enqueued(self, job: JobHandle, already: bool) -> None:
        if already:
            note = f"asked again: key {job.key} is held, no second job"
            self._line(self._app.clock.now(), "queued", job.task, note)
        elif job.run_at > job.created_at:
            note = f"due in {short_duration((job.run_at - job.created_at).total_seconds())}"
            self._line(job.created_at, "queued", job.task, note)

    async def _fired(self, event: Event) -> None:
        assert event.job is not None
        self.counts["fired"] += 1
        self._line(event.at, "fired", event.job.task, f"by schedule {event.schedule}")

    async def _happened(self, event: Event) -> None:
        assert event.job is not None
        what = event.name.removeprefix("job.")
        self.counts[what] += 1
        if what == "started":
            if event.job.task in WORTH_A_START:
                self._line(event.at, "running", event.job.task, "")
        elif what in STATE_STYLES:
            self._line(event.at, what, event.job.task, _outcome(event, event.job))

    def _line(self, at: datetime, what: str, task: str, note: str) -> None:
        if self._quiet:
            return
        glyph, colour = STATE_STYLES[what]
        kind = style(f"{KINDS.get(task, ''):<20}", dim=True)
        state = style(f"{glyph} {what:<9}", colour)
        if on_terminal():
            note = table.cut(safe(note), max(shutil.get_terminal_size().columns - BEFORE_NOTE, 1))
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
            return f"after {job.attempt} attempt{'s' * (job.attempt != 1)}: {cause}"
        case _:
            return str(error.get("message", ""))


def header(url: str, entries: Sequence[tuple[str, str]] = ()) -> str:
    at = command(url)
    rows = (
        ("the jobs", f"{at} jobs list"),
        ("one of them", f"{at} jobs show ID"),
        ("schedules", f"{at} schedules list"),
        ("the figures", f"{at} stats"),
        ("the workers", f"{at} workers list"),
    )
    return "\n".join(
        (
            style("rota demo", bold=True) + ": a store, a worker, an API and sample tasks in one process.",
            f"The store is {safe(url)}",
            *(f"  {what:<13}{style(safe(line), 'cyan')}" for what, line in entries),
            "Look closer from another terminal:",
            *(f"  {what:<13}{style(line, 'cyan')}" for what, line in rows),
            "Ctrl-C finishes what runs and stops.",
            "",
        )
    )


def command(url: str) -> str:
    return f"rota --url {shlex.quote(url)}"


def summary(stats: Mapping[str, Any], running: list[Job]) -> str:
    depth = sum(q["scheduled"] for q in stats["queues"].values())
    parts = [
        f"{stats['succeeded']} succeeded",
        f"{stats['failed']} failed",
        f"{stats['cancelled']} cancelled",
        f"{stats['running']} running",
        f"{stats['queued']} queued" + (f" ({depth} not yet due)" if depth else ""),
    ]
    progress = [
        f"{safe(j.task)} {j.progress['percent']:.0f}%"
        for j in running
        if j.progress and j.progress.get("percent") is not None
    ]
    line = " · ".join(parts + progress)
    return style(f"{'──' if on_terminal() else '--'} {line}", bold=True)


def closing(counts: Mapping[str, int], url: str, keeps: bool) -> str:
    done = ", ".join(f"{counts[what]} {what}" for what in ("succeeded", "retried", "failed", "cancelled"))
    where = f"\nThe jobs are still there: {command(url)} jobs list --state failed" if keeps else ""
    return f"\n{style('Stopped.', bold=True)} {done}.{where}"
