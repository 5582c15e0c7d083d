"""Run an app's due jobs in a test: ``drain``.

Nothing is mocked: jobs go through the app's own store, the real scheduler and a real worker, so a test
sees retries, keys, timeouts and payload checks as in production. SQLite in memory makes it fast, and with
a FakeClock time moves only on request::

    async def test_a_receipt_is_sent():
        async with override(app, clock=FakeClock()):
            await place_order(42)
            assert_enqueued(send_receipt, order_id=42)
            await drain(app)
            assert outbox == ["receipt 42"]

Every loop here has a limit: a test ends, whatever the tasks do.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from ..app import Rota
from ..core.schedules.intervals import seconds
from ..errors import RotaError
from ..model import JobFilter, PageRequest, State
from .clock import FakeClock

PAGE = 1000
LONGEST_S = 100 * 366 * 86400.0
LIMIT = 10_000  # attempts and fires of one call: more than a test means to make
MOST_FRUITLESS = 100  # stops in a row, for jobs that a limit or budget holds up, at which none begins


class EndlessDrain(RotaError):
    """``drain`` ran into its limit: a task snoozes, retries or enqueues itself without end."""


async def drain(
    app: Rota,
    *,
    advance: bool | float | str | timedelta = False,
    concurrency: int = 10,
    limit: int = LIMIT,
) -> int:
    """Fire the due schedules and run every due job, with the jobs they enqueue; the number of attempts.

    Returns when nothing is due: a job that failed and will be retried later, or that was enqueued with a
    delay, stays queued. With a FakeClock, ``advance`` also moves time: a duration (seconds, ``"2d"``, a
    timedelta) by that much, stopping at every fire and every due job on the way, and when a rate or budget
    admits the next job; ``True`` until no job is left, retries included. An error in a task is not raised
    here: inspect the job, or await its ``result()``.
    """
    end = _end(app, advance)
    drained = _Drain(app, concurrency, limit)
    while True:
        await drained.run_due()
        next_job = await _next_job(app, drained.admits_at) if advance is not False else None
        if next_job is None and not isinstance(end, datetime):
            return drained.attempts
        stop = await _next_stop(app, next_job)
        if isinstance(end, datetime) and (stop is None or stop > end):
            _move(app, end)
            await drained.run_due()
            return drained.attempts
        _move(app, stop)


def drain_sync(
    app: Rota,
    *,
    advance: bool | float | str | timedelta = False,
    concurrency: int = 10,
    limit: int = LIMIT,
) -> int:
    """``drain`` for tests that are not async."""
    return app.portal.call(drain, app, advance=advance, concurrency=concurrency, limit=limit)


class _Drain:
    """What one call of ``drain`` has done so far, held against its limit."""

    def __init__(self, app: Rota, concurrency: int, limit: int, *, fires: bool = True) -> None:
        self.attempts = 0
        self._app, self._concurrency, self._limit = app, concurrency, limit
        self._fires = fires
        self._left = limit
        self._next_claim_at: datetime | None = None
        self._fruitless = 0

    @property
    def admits_at(self) -> datetime | None:
        """When jobs may begin that are due and held up; None: the last times that was said, none did."""
        return self._next_claim_at if self._fruitless < MOST_FRUITLESS else None

    async def run_due(self) -> None:
        """Fire what is due, then run what is due, until neither is."""
        async with self._app.worker(
            burst=True,
            heartbeat_thread=False,
            lease_guard=False,
            upkeep=False,
            scheduler=self._fires,
            concurrency=self._concurrency,
            max_jobs=self._left,
        ) as worker:
            if worker.scheduler is not None:
                while await worker.scheduler.tick() == 0.0:
                    self._count(1)
            await worker.run()
        self.attempts += worker.finished
        self._next_claim_at = worker.turns.next_due_at
        self._fruitless = 0 if worker.finished else self._fruitless + 1
        self._count(worker.finished)

    def _count(self, done: int) -> None:
        self._left -= done
        if self._left <= 0:
            raise EndlessDrain(
                f"drain stopped after {self._limit:,} attempts and fires, with more to come: a task snoozes, "
                "fails or enqueues itself without end, or a schedule fires too often; pass limit= if it "
                "needs more, or a shorter advance="
            )


async def run_due_jobs(app: Rota) -> None:
    """Run every due job, firing no schedule."""
    await _Drain(app, 10, LIMIT, fires=False).run_due()


def _end(app: Rota, advance: bool | float | str | timedelta) -> datetime | None:
    """Where time stops; None if jobs decide."""
    if advance is False:
        return None
    if not isinstance(app.clock, FakeClock):
        raise TypeError(
            f"drain(advance={advance!r}) needs a FakeClock: Rota(url, clock=FakeClock()) or "
            "override(app, clock=FakeClock())"
        )
    if advance is True:
        return None
    return app.clock.now() + timedelta(seconds=seconds("advance", advance, 0.0, LONGEST_S))


async def _next_job(app: Rota, admits_at: datetime | None) -> datetime | None:
    """When the next job of this app's tasks may begin. One that is due and cannot run is held up or paused.

    ``admits_at``: when the store expects that something held up may begin. A paused job stays.
    """
    store, now = await app.stores.get(), app.clock.now()
    where, page = JobFilter(states=(State.QUEUED,)), PageRequest(limit=PAGE)
    found: datetime | None = None
    while True:
        answer = await store.jobs(where, page)
        for job in answer.items:
            if job.task not in app.registry.tasks:
                continue
            at = job.run_at if job.run_at > now else admits_at
            if at is not None and at > now and (found is None or at < found):
                found = at
        if answer.next is None:
            return found
        page = PageRequest(limit=PAGE, cursor=answer.next)


async def _next_stop(app: Rota, next_job: datetime | None) -> datetime | None:
    """The next job or fire, whichever comes first."""
    fire = (await (await app.stores.get()).due_schedules(app.clock.store_now, 1)).next_check_at
    return min((at for at in (next_job, fire) if at is not None), default=None)


def _move(app: Rota, at: datetime | None) -> None:
    if at is not None and isinstance(app.clock, FakeClock):
        app.clock.advance(max((at - app.clock.now()).total_seconds(), 0.0))
