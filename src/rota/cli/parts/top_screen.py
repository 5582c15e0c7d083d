"""What ``rota top`` shows and what a key does to it. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from ...operate.views import ActivityBucket, GateView, JobView, QueueView
from ...terminal.text import plural

MINUTE = timedelta(minutes=1)


class TopSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen at one moment. None: not for this caller to know."""

    place: str
    now: datetime
    due: int
    running: int
    workers: int | None
    jobs_per_s: float | None
    failures_per_min: float | None
    gate: GateView | None  # over everything
    queues: tuple[QueueView, ...] = ()
    running_jobs: tuple[JobView, ...] = ()
    failures: tuple[JobView, ...] = ()


class TopAction(msgspec.Struct, frozen=True, kw_only=True):
    """What a key asks for. ``queue`` None: everything."""

    verb: Literal["quit", "pause", "resume"]
    queue: str | None = None


class TopScreen(msgspec.Struct, frozen=True, kw_only=True):
    glance: TopSnapshot
    chosen: str | None = None  # the name of a queue
    question: str = ""  # waiting for y; the act that follows is in ``proposed``
    proposed: TopAction | None = None
    note: str = ""  # what came of the last key
    trouble: str = ""  # why the glance is an old one
    helps: bool = False


def pressed(screen: TopScreen, key: str) -> tuple[TopScreen, TopAction | None]:
    """The screen after a key, and what is to be done."""
    screen = msgspec.structs.replace(screen, note="")
    if screen.proposed is not None:
        agreed = key in ("y", "Y")
        rest = msgspec.structs.replace(
            screen, question="", proposed=None, note="" if agreed else "Nothing was done."
        )
        return rest, screen.proposed if agreed else None
    if key == "q":
        return screen, TopAction(verb="quit")
    if key in ("?", "h") or (key == "esc" and screen.helps):
        return msgspec.structs.replace(screen, helps=not screen.helps), None
    if key == "p":
        return _asking(screen), None
    if key in ("down", "tab", "j"):
        return _choose(screen, 1), None
    if key in ("up", "backtab", "k"):
        return _choose(screen, -1), None
    if key == " ":
        return _switch(screen)
    return screen, None


def _asking(screen: TopScreen) -> TopScreen:
    glance = screen.glance
    if glance.gate is not None:
        question, act = "Let everything go on? y/n", TopAction(verb="resume")
    else:
        workers = "workers" if glance.workers is None else plural(glance.workers, "live worker")
        question = f"Pause everything? {workers} will claim nothing, {plural(glance.running, 'running job')}"
        question, act = f"{question} will finish. y/n", TopAction(verb="pause")
    return msgspec.structs.replace(screen, question=question, proposed=act)


def _choose(screen: TopScreen, step: int) -> TopScreen:
    names = [queue.name for queue in screen.glance.queues]
    if not names:
        return msgspec.structs.replace(screen, note="No queue is in use.")
    if screen.chosen in names:
        place = (names.index(screen.chosen) + step) % len(names)
    else:
        place = 0 if step > 0 else len(names) - 1
    return msgspec.structs.replace(screen, chosen=names[place])


def _switch(screen: TopScreen) -> tuple[TopScreen, TopAction | None]:
    queue = next((one for one in screen.glance.queues if one.name == screen.chosen), None)
    if queue is None:
        return msgspec.structs.replace(screen, note="Choose a queue first: arrows or Tab."), None
    return screen, TopAction(verb="pause" if queue.gate is None else "resume", queue=queue.name)


def pace(steps: Sequence[ActivityBucket], now: datetime) -> tuple[float, float]:
    """Jobs ended per second and failed per minute, over this minute and the one before."""
    since = now.replace(second=0, microsecond=0) - MINUTE
    seconds = (now - since).total_seconds()
    lately = [step for step in steps if step.at >= since]
    ended = sum(step.succeeded + step.failed + step.cancelled for step in lately)
    return ended / seconds, sum(step.failed for step in lately) * 60 / seconds
