"""Tasks of due jobs that no running worker has, and for how long. Pure: workers, jobs and times come in."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from datetime import datetime

from ...durations import short
from ...model import DueLane, ErrorRecord, Value
from .why import WorkerFacts

MOST_GAP_S = 1800.0  # between two checks: after a longer one, no worker was there to check


class Absence(Value, frozen=True, kw_only=True):
    """How long workers ran without one that has the task. Time without any worker does not count."""

    since: datetime
    absent_s: float = 0.0


def absent_tasks(
    lanes: Sequence[DueLane], workers: Sequence[WorkerFacts], served_only: bool = True
) -> dict[str, list[DueLane]]:
    """Tasks with due jobs that no worker has.

    ``served_only``: in queues that a worker serves. Where none does, the one that has the task may be the one
    that is missing.
    """
    known = {task for worker in workers for task in worker.tasks}
    found: dict[str, list[DueLane]] = {}
    for lane in lanes:
        if lane.task in known:
            continue
        if not served_only or any(worker.serves(lane.queue) for worker in workers):
            found.setdefault(lane.task, []).append(lane)
    return found


def prolonged(absence: Absence, checked_at: datetime, now: datetime) -> Absence:
    """The absence at ``now``, when it was last checked at ``checked_at``."""
    passed_s = (now - checked_at).total_seconds()
    counted_s = passed_s if 0 < passed_s <= MOST_GAP_S else 0.0
    return Absence(since=absence.since, absent_s=absence.absent_s + counted_s)


def unknown_task(task: str, absence: Absence, known: Collection[str]) -> ErrorRecord:
    """Why a job of the task has failed."""
    near = difflib.get_close_matches(task, known, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return ErrorRecord(
        type="UnknownTask",
        message=f"no running worker has had task {task!r} since {absence.since:%Y-%m-%d %H:%M} UTC "
        f"({short(round(absence.absent_s / 60) * 60)}): {hint}start a worker that has it, then retry the job",
        details={"task": task, "since": absence.since, "absent_s": absence.absent_s, "near": near},
    )
