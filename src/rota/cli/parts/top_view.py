"""Renders ``rota top``: a screen, a width and a height become lines. Pure; always coloured.

Everything stored goes through ``safe`` here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from ...core.plurals import plural
from ...operate.views import JobView, LimitView, QueueView
from ...terminal.table import Column, cut, table_lines
from ...terminal.table import width as cell_width
from ...terminal.text import STATE_STYLES, rate, relative_time, safe, short_duration, utc_time
from .pause_options import pause_summary
from .top_screen import TopScreen, TopSnapshot

QUEUES = (
    Column("  "),
    Column("QUEUE", yields=4),
    Column("DUE", right=True),
    Column("LATER", right=True, yields=2),
    Column("RUNNING", right=True),
    Column("OLDEST DUE", right=True),
    Column("PER MIN", right=True),
    Column("FAILED", right=True),
    Column("WORKERS", right=True, yields=3),
    Column("PAUSED", yields=1),
)
LIMITS = (
    Column("  "),
    Column("FULLEST LIMITS", yields=4),
    Column("RUNNING", right=True),
    Column("RATE", right=True, yields=2),
    Column("LEFT", right=True),
    Column("NEXT", right=True, yields=3),
    Column("LANES", right=True, yields=1),
)
RUNNING = (
    Column("  "),
    Column("RUNNING", yields=4),
    Column("FOR", right=True),
    Column("QUEUE", yields=3),
    Column("WORKER", yields=2),
    Column("PROGRESS", yields=1),
)
FAILURES = (
    Column("  "),
    Column("NEWEST FAILURES", yields=4),
    Column("WHEN", right=True),
    Column("ATTEMPTS", right=True, yields=1),
    Column("JOB", yields=3),
    Column("ERROR", yields=2),
)
WIDE = 90  # narrower screens show neither the id nor the attempts of a failed job
KEYS = "q quit   p pause everything   ↑↓ Tab select a queue   Space pause it   ? help"
HELP = """
q, Ctrl-C       Quit. Jobs and workers are not affected.
p               Pause or resume everything, after a prompt.
↑ ↓, Tab, j k   Select a queue.
Space           Pause or resume the selected queue.
?               Show or hide this help.

DUE             Queued jobs that could run now.  LATER: queued for a later time.
PER MIN         Jobs finished per minute, over the last ten minutes.  FAILED: of these.
jobs/s          Jobs finished per second, over this minute and the one before.
LEFT            Units of a limit's rate that could begin now.  LANES: what waits for a limit.

Show one job: rota jobs show ID        Why it is not running: rota jobs why ID
""".strip("\n").splitlines()  # fmt: skip


def render(screen: TopScreen, width: int, height: int) -> list[str]:
    """Exactly ``height`` lines, each at most ``width`` cells."""
    head, foot = _head(screen, width), [_foot(screen)]
    space = height - len(head) - len(foot)
    body = ["", *HELP] if screen.shows_help else _body(screen, width, space)
    body = [*body[:space], *[""] * (space - len(body))]
    return [_clipped(line, width) for line in [*head, *body, *foot][-height:]]


# --- head and foot -------------------------------------------------------------------------------


def _head(screen: TopScreen, width: int) -> list[str]:
    snapshot = screen.snapshot
    title, time = click.style("rota top", bold=True) + f"  {safe(snapshot.place)}", utc_time(snapshot.now)
    gap = max(width - cell_width(title) - len(time), 2)
    lines = [f"{title}{' ' * gap}{click.style(time, dim=True)}", _counts(snapshot)]
    if snapshot.gate is not None:
        pause = f"‖ Everything is paused {pause_summary(snapshot.gate, snapshot.now)}"
        lines.append(click.style(pause, fg="yellow", bold=True))
    if screen.error:
        lines.append(click.style(safe(screen.error), fg="red"))
    return lines


def _counts(snapshot: TopSnapshot) -> str:
    counts = [f"{snapshot.due:,} due", f"{snapshot.running:,} running"]
    if snapshot.workers is not None:
        none = click.style("no worker is running", fg="yellow")
        counts.insert(0, plural(snapshot.workers, "worker") if snapshot.workers else none)
    if snapshot.jobs_per_s is not None:
        counts.append(f"{rate(snapshot.jobs_per_s)} jobs/s")
    if snapshot.failures_per_min is not None:
        failures = f"{rate(snapshot.failures_per_min)} failures/min"
        counts.append(click.style(failures, fg="red") if snapshot.failures_per_min else failures)
    return " · ".join(counts)


def _foot(screen: TopScreen) -> str:
    if screen.question:
        return click.style(screen.question, bold=True)
    return safe(screen.note) if screen.note else click.style(KEYS, dim=True)


# --- body ----------------------------------------------------------------------------------------


class _Part(NamedTuple):
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[str]]
    empty: str
    selected: int | None = None  # the row that must be visible


def _body(screen: TopScreen, width: int, space: int) -> list[str]:
    """Tables, one below the other, that share the space fairly; limits only if there are any."""
    snapshot = screen.snapshot
    names = [queue.name for queue in snapshot.queues]
    selected = names.index(screen.selected) if screen.selected in names else None
    limits = (_Part(LIMITS, [_limit(one, snapshot) for one in snapshot.limits], ""),)
    parts = (
        _Part(
            QUEUES,
            [_queue(one, snapshot, screen.selected) for one in snapshot.queues],
            "No queue is in use.",
            selected,
        ),
        *(limits if snapshot.limits else ()),
        _Part(RUNNING, [_running(one, snapshot) for one in snapshot.running_jobs], "No job is running."),
        _failures(snapshot, width),
    )
    heights = share(space - 2 * len(parts), [max(len(part.rows), 1) for part in parts])
    return [line for part, height in zip(parts, heights, strict=True) for line in _part(part, width, height)]


def _failures(snapshot: TopSnapshot, width: int) -> _Part:
    rows = [_failure(one, snapshot) for one in snapshot.failures]
    kept = [
        i for i, column in enumerate(FAILURES) if width >= WIDE or column.title not in ("JOB", "ATTEMPTS")
    ]
    columns = tuple(FAILURES[i] for i in kept)
    return _Part(columns, [[row[i] for i in kept] for row in rows], "No job has failed.")


def _part(part: _Part, width: int, height: int) -> list[str]:
    lines = table_lines(part.columns, part.rows, width)
    heading = click.style(lines[0], dim=True)
    if not part.rows:
        return ["", heading, f"    {part.empty}"]
    first = 0 if part.selected is None else max(part.selected - height + 1, 0)
    shown = lines[1 + first : 1 + first + height]
    if part.selected is not None and height > 0:
        position = part.selected - first
        shown[position] = click.style(click.unstyle(shown[position]).ljust(width), reverse=True)
    return ["", heading, *shown]


def share(space: int, wanted: Sequence[int]) -> list[int]:
    """Lines for each part: one each in turn, while there is space and a part wants more."""
    given = [0] * len(wanted)
    while space > 0 and given != list(wanted):
        for i, most in enumerate(wanted):
            if given[i] < most and space > 0:
                given[i] += 1
                space -= 1
    return given


def _queue(queue: QueueView, snapshot: TopSnapshot, selected: str | None) -> tuple[str, ...]:
    paused = queue.gate and click.style(pause_summary(queue.gate, snapshot.now), fg="yellow")
    return (
        ("›" if queue.name == selected else " ") + (click.style("‖", fg="yellow") if queue.gate else " "),
        safe(queue.name),
        *(f"{count:,}" for count in (queue.due, queue.due_later, queue.running)),
        "–" if queue.oldest_due_s is None else short_duration(queue.oldest_due_s),
        rate(queue.per_minute),
        rate(queue.failed_per_minute),
        str(queue.workers),
        paused or "",
    )


def _limit(limit: LimitView, snapshot: TopSnapshot) -> tuple[str, ...]:
    running = f"{limit.running:,}" if limit.most is None else f"{limit.running:,} of {limit.most:,}"
    left = "" if limit.tokens is None or limit.burst is None else f"{limit.tokens:,.0f} of {limit.burst:,}"
    next_s = None
    if limit.next_token_at is not None:
        next_s = max((limit.next_token_at - snapshot.now).total_seconds(), 0.0)
    return (
        click.style("●", fg="yellow") if limit.is_full else " ",
        safe(limit.name),
        running,
        safe(limit.rate or ""),
        left,
        "" if next_s is None else f"in {short_duration(next_s)}",
        f"{limit.waiting_lanes:,}" if limit.waiting_lanes else "",
    )


def _running(job: JobView, snapshot: TopSnapshot) -> tuple[str, ...]:
    took = "–" if job.started_at is None else short_duration((snapshot.now - job.started_at).total_seconds())
    return _glyph("running"), safe(job.task), took, safe(job.queue), safe(job.worker or "–"), _progress(job)


def _progress(job: JobView) -> str:
    """Percent and message. A task may have stored any JSON."""
    progress = job.progress
    if not isinstance(progress, dict) or not isinstance(progress.get("percent"), int | float):
        return ""
    return f"{progress['percent']:.0f}% {safe(progress.get('message', ''))}".rstrip()


def _failure(job: JobView, snapshot: TopSnapshot) -> tuple[str, ...]:
    error = job.error if isinstance(job.error, dict) else {}
    return (
        _glyph("failed"),
        safe(job.task),
        relative_time(job.finished_at, snapshot.now),
        f"{job.attempt}/{job.max_attempts}",
        safe(job.id),
        f"{safe(error.get('type', '?'))}: {safe(error.get('message', ''))}",
    )


def _glyph(state: str) -> str:
    glyph, colour = STATE_STYLES[state]
    return click.style(glyph, fg=colour)


def _clipped(line: str, width: int) -> str:
    return line if cell_width(line) <= width else cut(click.unstyle(line), width)
