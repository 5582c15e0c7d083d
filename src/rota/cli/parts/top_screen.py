"""The state of ``rota top`` and what each key does to it. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from ...core.plurals import plural
from ...operate.views import ActivityBucket, GateView, JobView, LimitView, QueueView

MINUTE = timedelta(minutes=1)


class TopSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What the store showed at one time. None: hidden from this caller."""

    place: str
    now: datetime
    due: int
    running: int
    workers: int | None
    jobs_per_s: float | None
    failures_per_min: float | None
    gate: GateView | None  # the pause of everything
    queues: tuple[QueueView, ...] = ()
    limits: tuple[LimitView, ...] = ()  # the fullest first
    running_jobs: tuple[JobView, ...] = ()
    failures: tuple[JobView, ...] = ()


class TopAction(msgspec.Struct, frozen=True, kw_only=True):
    """What a key requests. ``queue`` None: everything."""

    verb: Literal["quit", "pause", "resume"]
    queue: str | None = None


class TopScreen(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is drawn."""

    snapshot: TopSnapshot
    selected: str | None = None  # the name of a queue
    question: str = ""  # waiting for y; the action that follows is ``proposed``
    proposed: TopAction | None = None
    note: str = ""  # the effect of the last key
    error: str = ""  # why the snapshot is out of date
    shows_help: bool = False


def press(screen: TopScreen, key: str) -> tuple[TopScreen, TopAction | None]:
    """The screen after a key, and the action to carry out."""
    screen = msgspec.structs.replace(screen, note="")
    if screen.proposed is not None:
        is_yes = key in ("y", "Y")
        answered = msgspec.structs.replace(
            screen, question="", proposed=None, note="" if is_yes else "Nothing was changed."
        )
        return answered, screen.proposed if is_yes else None
    if key == "q":
        return screen, TopAction(verb="quit")
    if key in ("?", "h") or (key == "esc" and screen.shows_help):
        return msgspec.structs.replace(screen, shows_help=not screen.shows_help), None
    if key == "p":
        return _ask(screen), None
    if key in ("down", "tab", "j"):
        return _select(screen, 1), None
    if key in ("up", "backtab", "k"):
        return _select(screen, -1), None
    if key == " ":
        return _toggle(screen)
    return screen, None


def _ask(screen: TopScreen) -> TopScreen:
    snapshot = screen.snapshot
    if snapshot.gate is not None:
        question, action = "Resume everything? y/n", TopAction(verb="resume")
    else:
        workers = "workers" if snapshot.workers is None else plural(snapshot.workers, "running worker")
        running = plural(snapshot.running, "running job")
        question = f"Pause everything? {workers} will start no jobs, {running} will finish. y/n"
        action = TopAction(verb="pause")
    return msgspec.structs.replace(screen, question=question, proposed=action)


def _select(screen: TopScreen, step: int) -> TopScreen:
    names = [queue.name for queue in screen.snapshot.queues]
    if not names:
        return msgspec.structs.replace(screen, note="No queue is in use.")
    if screen.selected in names:
        position = (names.index(screen.selected) + step) % len(names)
    else:
        position = 0 if step > 0 else len(names) - 1
    return msgspec.structs.replace(screen, selected=names[position])


def _toggle(screen: TopScreen) -> tuple[TopScreen, TopAction | None]:
    queue = next((one for one in screen.snapshot.queues if one.name == screen.selected), None)
    if queue is None:
        return msgspec.structs.replace(screen, note="Select a queue first: arrow keys or Tab."), None
    return screen, TopAction(verb="pause" if queue.gate is None else "resume", queue=queue.name)


def throughput(buckets: Sequence[ActivityBucket], now: datetime) -> tuple[float, float]:
    """Jobs finished per second and failed per minute, over this minute and the one before."""
    since = now.replace(second=0, microsecond=0) - MINUTE
    seconds = (now - since).total_seconds()
    recent = [bucket for bucket in buckets if bucket.at >= since]
    finished = sum(bucket.succeeded + bucket.failed + bucket.cancelled for bucket in recent)
    return round(finished / seconds, 3), round(sum(bucket.failed for bucket in recent) * 60 / seconds, 3)


def fullest(limits: Sequence[LimitView], most: int) -> tuple[LimitView, ...]:
    """The limits with the least left; of a family, its keys."""
    each = [one for limit in limits for one in (limit.keys or (limit,))]
    return tuple(sorted(each, key=lambda one: (-fullness(one), -one.waiting_lanes, one.name))[:most])


def fullness(limit: LimitView) -> float:
    """The part of it that is in use: 1 is full, and more is over a limit that was lowered."""
    running = limit.running / limit.most if limit.most else 0.0
    used = 1 - limit.tokens / limit.burst if limit.tokens is not None and limit.burst else 0.0
    return max(running, used)
