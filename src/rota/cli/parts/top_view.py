"""How ``rota top`` looks: a screen, a width and a height become lines. Pure; colours are always in.

Everything that was stored goes through ``safe`` here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from ...operate.views import JobView, QueueView
from ...terminal import table
from ...terminal.text import STATE_STYLES, plural, relative_time, safe, short_duration, utc_time
from ..commands.queues import rate
from .pause_options import pause_summary
from .top_screen import TopScreen, TopSnapshot

QUEUES = (
    table.Column("  "),
    table.Column("QUEUE", yields=4),
    table.Column("DUE", right=True),
    table.Column("LATER", right=True, yields=2),
    table.Column("RUNNING", right=True),
    table.Column("OLDEST DUE", right=True),
    table.Column("PER MIN", right=True),
    table.Column("FAILED", right=True),
    table.Column("WORKERS", right=True, yields=3),
    table.Column("PAUSED", yields=1),
)
RUNNING = (
    table.Column("  "),
    table.Column("RUNNING", yields=4),
    table.Column("FOR", right=True),
    table.Column("QUEUE", yields=3),
    table.Column("WORKER", yields=2),
    table.Column("PROGRESS", yields=1),
)
FAILURES = (
    table.Column("  "),
    table.Column("NEWEST FAILURES", yields=4),
    table.Column("WHEN", right=True),
    table.Column("ATTEMPTS", right=True, yields=1),
    table.Column("JOB", yields=3),
    table.Column("ERROR", yields=2),
)
WIDE = 90  # on less a failed job keeps its error only
KEYS = "q quit   p pause everything   ↑↓ Tab choose a queue   space pause it   ? help"
HELP = """
q, Ctrl-C       quit; nothing that runs is touched
p               pause everything, or let it go on; asks first
↑ ↓, Tab, j k   choose a queue
space           pause the chosen queue, or let it go on
?               this help, and back

DUE             jobs that wait and could run now; LATER: queued for a later time
PER MIN         jobs that ended, over the last ten minutes; FAILED of them
jobs/s          jobs that ended, over this minute and the one before

One job in full: rota jobs show ID        Why it waits: rota jobs why ID
""".strip("\n").splitlines()  # fmt: skip


def render(screen: TopScreen, width: int, height: int) -> list[str]:
    """Exactly ``height`` lines of at most ``width`` cells."""
    head, foot = _head(screen, width), [_foot(screen)]
    room = height - len(head) - len(foot)
    body = ["", *HELP] if screen.helps else _body(screen, width, room)
    body = [*body[:room], *[""] * (room - len(body))]
    return [_clipped(line, width) for line in [*head, *body, *foot][-height:]]


# --- head and foot -------------------------------------------------------------------------------


def _head(screen: TopScreen, width: int) -> list[str]:
    glance = screen.glance
    title, time = click.style("rota top", bold=True) + f"  {safe(glance.place)}", utc_time(glance.now)
    gap = max(width - table.width(title) - len(time), 2)
    lines = [f"{title}{' ' * gap}{click.style(time, dim=True)}", _figures(glance)]
    if glance.gate is not None:
        said = f"‖ Everything is paused {pause_summary(glance.gate, glance.now)}"
        lines.append(click.style(said, fg="yellow", bold=True))
    if screen.trouble:
        lines.append(click.style(safe(screen.trouble), fg="red"))
    return lines


def _figures(glance: TopSnapshot) -> str:
    figures = [f"{glance.due:,} due", f"{glance.running:,} running"]
    if glance.workers is not None:
        none = click.style("no worker is alive", fg="yellow")
        figures.insert(0, plural(glance.workers, "worker") if glance.workers else none)
    if glance.jobs_per_s is not None:
        figures.append(f"{rate(glance.jobs_per_s)} jobs/s")
    if glance.failures_per_min is not None:
        said = f"{rate(glance.failures_per_min)} failures/min"
        figures.append(click.style(said, fg="red") if glance.failures_per_min else said)
    return " · ".join(figures)


def _foot(screen: TopScreen) -> str:
    if screen.question:
        return click.style(screen.question, bold=True)
    return safe(screen.note) if screen.note else click.style(KEYS, dim=True)


# --- body ----------------------------------------------------------------------------------------


class _Part(NamedTuple):
    columns: tuple[table.Column, ...]
    rows: Sequence[Sequence[str]]
    empty: str
    marked: int | None = None  # the row that must be seen


def _body(screen: TopScreen, width: int, room: int) -> list[str]:
    """Three tables, one below the other, that share the room fairly."""
    glance = screen.glance
    names = [queue.name for queue in glance.queues]
    marked = names.index(screen.chosen) if screen.chosen in names else None
    parts = (
        _Part(
            QUEUES,
            [_queue(one, glance, screen.chosen) for one in glance.queues],
            "No queue is in use.",
            marked,
        ),
        _Part(RUNNING, [_running(one, glance) for one in glance.running_jobs], "Nothing runs."),
        _failures(glance, width),
    )
    rooms = share(room - 2 * len(parts), [max(len(part.rows), 1) for part in parts])
    return [line for part, given in zip(parts, rooms, strict=True) for line in _part(part, width, given)]


def _failures(glance: TopSnapshot, width: int) -> _Part:
    rows = [_failure(one, glance) for one in glance.failures]
    kept = [
        i for i, column in enumerate(FAILURES) if width >= WIDE or column.title not in ("JOB", "ATTEMPTS")
    ]
    columns = tuple(FAILURES[i] for i in kept)
    return _Part(columns, [[row[i] for i in kept] for row in rows], "No job has failed.")


def _part(part: _Part, width: int, room: int) -> list[str]:
    lines = _lines(part.columns, part.rows, width)
    heading = click.style(lines[0], dim=True)
    if not part.rows:
        return ["", heading, f"    {part.empty}"]
    first = 0 if part.marked is None else max(part.marked - room + 1, 0)
    shown = lines[1 + first : 1 + first + room]
    if part.marked is not None and room > 0:
        place = part.marked - first
        shown[place] = click.style(click.unstyle(shown[place]).ljust(width), reverse=True)
    return ["", heading, *shown]


def _lines(columns: Sequence[table.Column], rows: Sequence[Sequence[str]], room: int) -> list[str]:
    """The heading and the rows."""
    cells = [[column.title for column in columns], *rows]
    widths = [max(table.width(row[i]) for row in cells) for i in range(len(columns))]
    widths = table.fit(columns, widths, room)
    return [table._line(columns, row, widths) for row in cells]


def share(room: int, wants: Sequence[int]) -> list[int]:
    """One line each in turn, as long as there is room and somebody wants one."""
    given = [0] * len(wants)
    while room > 0 and given != list(wants):
        for i, want in enumerate(wants):
            if given[i] < want and room > 0:
                given[i] += 1
                room -= 1
    return given


def _queue(queue: QueueView, glance: TopSnapshot, chosen: str | None) -> tuple[str, ...]:
    paused = queue.gate and click.style(pause_summary(queue.gate, glance.now), fg="yellow")
    return (
        ("›" if queue.name == chosen else " ") + (click.style("‖", fg="yellow") if queue.gate else " "),
        safe(queue.name),
        *(f"{count:,}" for count in (queue.queued, queue.scheduled, queue.running)),
        "–" if queue.oldest_due_s is None else short_duration(queue.oldest_due_s),
        rate(queue.per_minute),
        rate(queue.failed_per_minute),
        str(queue.workers),
        paused or "",
    )


def _running(job: JobView, glance: TopSnapshot) -> tuple[str, ...]:
    took = "–" if job.started_at is None else short_duration((glance.now - job.started_at).total_seconds())
    return _glyph("running"), safe(job.task), took, safe(job.queue), safe(job.worker or "–"), _progress(job)


def _progress(job: JobView) -> str:
    """Stored by a task: it may be anything."""
    told = job.progress
    if not isinstance(told, dict) or not isinstance(told.get("percent"), int | float):
        return ""
    return f"{told['percent']:.0f}% {safe(told.get('message', ''))}".rstrip()


def _failure(job: JobView, glance: TopSnapshot) -> tuple[str, ...]:
    error = job.error if isinstance(job.error, dict) else {}
    return (
        _glyph("failed"),
        safe(job.task),
        relative_time(job.finished_at, glance.now),
        f"{job.attempt}/{job.max_attempts}",
        safe(job.id),
        f"{safe(error.get('type', '?'))}: {safe(error.get('message', ''))}",
    )


def _glyph(state: str) -> str:
    glyph, colour = STATE_STYLES[state]
    return click.style(glyph, fg=colour)


def _clipped(line: str, width: int) -> str:
    return line if table.width(line) <= width else table.cut(click.unstyle(line), width)
