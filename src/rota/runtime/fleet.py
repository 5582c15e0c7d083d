"""The fleet: how many workers are like this one, and what each leaves to the others.

Any of them could look for a job, fire a schedule or check the tasks, so each does its share: a hint that a
job is ready makes a few of them look at once, and what all do now and then each does less often the more
they are. Only numbers are shared, read now and then from the workers' documents. They may be out of date:
then a job waits a little longer, or a few more look for it. Nothing is left undone, for every wait here has
a limit that does not depend on them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta

import msgspec

from ..model import Document
from ..store.protocol import Store
from .clock import Clock, monotonic

READ_EVERY_S = 30.0
READ_SOON_S = 5.0  # again while they change
DOUBT_S = 3.0  # the least between two readings
READ_PER_WORKER_S = 0.2  # so that 500 workers do not read 500 documents each all the time
LIVE_S = 60.0  # at most this long without a heartbeat
FEW = 3  # look at once for a single job: one may be busy, another gone
MOST_POLLS = 5  # poll intervals between two polls of one worker, plus a fifth
LATE_LOOKS = 8  # of the others in each poll interval, should the first not have been enough
MOST_TICKS_S = 10.0
DEAF_S = 60.0  # without a word from the listener


class WorkerSeen(msgspec.Struct, frozen=True):
    """What a worker's document says that matters to the others."""

    id: str
    queues: tuple[str, ...] | None = None
    exclude_queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    concurrency: int = 1
    running: int = 0
    state: str = "running"
    scheduler: bool = False

    def is_like(self, other: WorkerSeen) -> bool:
        """Whether both can run the same jobs."""
        mine = (self.queues, self.exclude_queues, self.tasks)
        return mine == (other.queues, other.exclude_queues, other.tasks)

    @property
    def is_free(self) -> bool:
        return self.state == "running" and self.running < self.concurrency


def hold_back(jobs: int, peers: int, poll_s: float, chance: float) -> float:
    """How long one of ``peers`` workers waits before it looks for jobs announced to all.

    A few more than the jobs look at once; the others come one by one, should that not have been enough.
    """
    at_once = (FEW - 1 + jobs) / peers
    if chance < at_once:
        return 0.0
    return (chance - at_once) / (1 - at_once) * poll_s * max(1.0, peers / LATE_LOOKS)


def shared(every_s: float, workers: int, most_s: float, chance: float) -> float:
    """How often one of them does what should be done ``every_s``: ``most_s`` and a fifth at the latest."""
    if workers <= 1 or most_s <= every_s:
        return every_s
    return min(every_s * workers, most_s) * (1 + chance / 5)


class Fleet:
    """The numbers as this worker knows them. Until it has read them, it acts as if it were alone."""

    def __init__(self, store: Store, clock: Clock, me: Callable[[], WorkerSeen]) -> None:
        self.workers = 1
        self.peers = 1  # like this one, with a free slot; this one counts
        self.schedulers = 1
        self.read_now = asyncio.Event()
        self._read_at = float("-inf")
        self._store = store
        self._clock = clock
        self._me = me

    async def read(self) -> float:
        """Read the numbers again; the seconds until the next time."""
        since = self._clock.now() - timedelta(seconds=LIVE_S)
        live = _seen(one for one in await self._store.documents("worker") if one.updated_at > since)
        me, self._read_at = self._me(), monotonic()
        others = [one for one in live if one.id != me.id]
        before = self.workers, self.peers
        self.workers = 1 + len(others)
        self.peers = 1 + sum(one.is_free and one.is_like(me) for one in others)
        self.schedulers = 1 + sum(one.scheduler for one in others)
        every_s = READ_EVERY_S if before == (self.workers, self.peers) else READ_SOON_S
        return every_s + READ_PER_WORKER_S * self.workers

    def doubt(self) -> None:
        """The numbers seem wrong: read them soon."""
        if monotonic() - self._read_at > DOUBT_S:
            self.read_now.set()

    def hold_back_s(self, jobs: int, poll_s: float) -> float:
        return hold_back(jobs, self.peers, poll_s, self._clock.jitter())

    def poll_s(self, poll_s: float) -> float:
        """The seconds between two polls of this worker: longer only while it receives notifications."""
        if self.peers == 1 or not self._hears:
            return poll_s
        return shared(poll_s, self.peers, MOST_POLLS * poll_s, self._clock.jitter())

    def tick_s(self, tick_s: float) -> float:
        """The seconds between two looks of this scheduler for schedules that were changed elsewhere."""
        return shared(tick_s, self.schedulers, MOST_TICKS_S, self._clock.jitter())

    def hold_back_fire_s(self, tick_s: float) -> float:
        return hold_back(1, self.schedulers, tick_s, self._clock.jitter())

    def share_s(self, every_s: float, most_s: float) -> float:
        """The same for something that every worker does."""
        return shared(every_s, self.workers, most_s, self._clock.jitter())

    @property
    def _hears(self) -> bool:
        if not self._store.capabilities.push:
            return False
        return self._store.gauges.get("listener_silent_s", 0.0) < DEAF_S


def _seen(documents: Iterable[Document]) -> list[WorkerSeen]:
    """One that cannot be read is left out."""
    found = []
    for document in documents:
        try:
            found.append(msgspec.json.decode(document.body, type=WorkerSeen))
        except msgspec.DecodeError:
            continue
    return found
