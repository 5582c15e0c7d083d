"""The scheduler: reads the schedules that are due, and writes what ``core/schedules/firing.py`` decides.

Any number of schedulers may run: a firing is a compare-and-set in the store, and the id of a job
derives from its schedule and fire time, so (schedule, fire time) creates at most one job, ever. One
pass is a ``tick``; it returns the seconds until the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from ..config import Settings
from ..core.jobs.gates import active, over_schedule
from ..core.jobs.key_templates import concurrency_key
from ..core.jobs.lifecycle import cancel
from ..core.jobs.options import NO_OPTIONS, Options, expiry
from ..core.schedules.calendars import Calendar
from ..core.schedules.firing import DueFire, FireDecision, decide, job_id, switched_off
from ..core.schedules.names import key_of
from ..core.schedules.rules import spread
from ..errors import OptionError, StoreError, StoreUnavailable
from ..model import LIVE, AuditEntry, DueSchedules, Firing, Gate, JobFilter, NewJob, PageRequest, Schedule
from ..runtime.clock import monotonic
from ..runtime.events import Event
from ..runtime.failpoints import hit
from ..runtime.fleet import Fleet
from ..runtime.gate_watch import load as load_gates
from ..runtime.metrics import WorkerMetrics
from ..runtime.runtime import Runtime
from ..runtime.service import pause
from ..store.protocol import Store
from ..tasks.handle import job_of
from ..tasks.published import PublishedTasks
from .calendars import load

log = logging.getLogger("rota.scheduler")

BATCH = 200  # decided without yielding to the loop: small enough for its other tasks to wait
REFUSED_S = 0.05
GRACE_S = 5.0  # a fire that is late by no more than this, and a tick, is on time
MOST_PREVIOUS = 1000
CHECK_PAUSED_S = 30.0  # a pause may end without a hint
LONGEST_MESSAGE = 500
LISTEN_S = 3600.0


class Scheduler:
    """Fires the due schedules of one store. Owns when it looks next, and the audit entries about fires.

    Never runs a job and never decides when a schedule is due: that is pure, in ``core/schedules``.
    """

    def __init__(
        self,
        runtime: Runtime,
        store: Store,
        published: PublishedTasks,
        declare: Callable[[], Awaitable[None]],
        tick_s: float,
    ) -> None:
        self.wake = asyncio.Event()  # set when a schedule was changed here that may be due soon
        self.metrics = WorkerMetrics()  # its worker's, once it has one
        self._runtime = runtime
        self._store = store
        self._published = published
        self._declare = declare
        self.fleet: Fleet | None = None  # its worker's
        self._declared = False
        self._tick_s = self._rest_s = tick_s

    async def tick(self) -> float:
        """Fire what is due; the seconds until the next schedule is, at most ``tick_s``, or a share of it."""
        if not self._declared:
            await self._declare()
            self._declared = True
        clock, asked_at = self._runtime.clock, monotonic()
        due = await self._store.due_schedules(clock.store_now, BATCH)
        clock.correct(due.at, asked_at)
        now = due.at
        if due.schedules:
            refused = await self._fire(due, now)
            # All refused: other schedulers fire them, or hold the rows. No need to ask again at once.
            return 0.0 if len(refused) < len(due.schedules) else min(REFUSED_S, self._tick_s)
        self._rest_s = self._tick_s if self.fleet is None else self.fleet.tick_s(self._tick_s)
        if due.next_check_at is None:
            return self._rest_s
        until_due_s = max((due.next_check_at - now).total_seconds(), 0.0)
        if until_due_s < self._rest_s and self.fleet is not None:  # the others know of it, too
            until_due_s += self.fleet.hold_back_fire_s(self._tick_s)
        return min(until_due_s, self._rest_s)

    async def listen(self) -> None:
        """Set ``wake`` when a schedule is added or edited elsewhere; until cancelled.

        Of many schedulers that receive the hint, a few look at once.
        """
        waker = self._store.waker()
        try:
            while True:
                if await waker.wait_schedules(LISTEN_S):
                    if self.fleet is not None:
                        await pause(self.fleet.hold_back_fire_s(self._tick_s), self.wake)
                    self.wake.set()
        finally:
            await waker.close()

    async def _fire(self, due: DueSchedules, now: datetime) -> frozenset[str]:
        schedules = due.schedules
        calendars = await self._calendars(schedules)
        gates = active(await load_gates(self._store), now)
        grace = GRACE_S + max(self._rest_s, self._tick_s)
        decisions = [
            held_back(schedule, gates, now)
            or decide(schedule, now, grace, calendars.get(schedule.calendar or ""), schedule.id in due.busy)
            for schedule in schedules
        ]
        tasks = await self._published.options_for_schedules(self._store)
        made = [self._made(before, one, tasks) for before, one in zip(schedules, decisions, strict=True)]
        decisions = [decision for decision, _ in made]
        await self._runtime.tenants.rules(self._store)
        governed = self._runtime.tenants.at_hand
        firings = [
            Firing(schedule=decision.schedule, expected=before.version, jobs=tuple(governed(jobs)))
            for before, (decision, jobs) in zip(schedules, made, strict=True)
        ]
        hit("fire.before")
        refused = await self._write(firings, now)
        hit("fire.after")
        entries: list[AuditEntry] = []
        for decision, firing in zip(decisions, firings, strict=True):
            if firing.schedule.id not in refused:
                if decision.cancel_previous:
                    await self._cancel_previous(decision, now)
                self._count(decision, now)
                entries += self._report(decision, firing.jobs, now)
        await self._record(entries)
        return refused

    def _count(self, decision: FireDecision, now: datetime) -> None:
        schedule = decision.schedule
        for fire in decision.fires:
            self.metrics.fires[fire.origin] += 1
            if fire.origin == "scheduler":  # a catch-up run is late by its nature
                self.metrics.late.add(now - fire.at - spread(schedule.jitter, key_of(schedule)))

    async def _write(self, firings: Sequence[Firing], now: datetime) -> frozenset[str]:
        """Fire them all; if the store cannot take one of them, that one is disabled and the others fire."""
        try:
            return await self._store.fire(firings, self._runtime.clock.store_now)
        except StoreUnavailable:
            raise
        except StoreError as error:
            if len(firings) > 1:
                refused = [await self._write([firing], now) for firing in firings]
                return frozenset().union(*refused)
            return await self._give_up(firings[0], f"its jobs cannot be stored: {error}", now)

    async def _give_up(self, firing: Firing, why: str, now: datetime) -> frozenset[str]:
        off = msgspec.structs.replace(
            firing.schedule, enabled=False, reason=why, check_at=None, held=(), version=firing.expected
        )
        if (await self._store.put_schedules([off], now))[0] is not None:
            await self._record([disabled(off, why, now)])
        return frozenset({off.id})

    async def _record(self, entries: Sequence[AuditEntry]) -> None:
        """Add to the audit log what no job records."""
        try:
            if entries:
                await self._store.append_audit(entries)
        except StoreError as error:  # it is in the log as well
            log.error("%d entries could not be added to the audit log: %s", len(entries), error)

    def _report(self, decision: FireDecision, jobs: Sequence[NewJob], now: datetime) -> list[AuditEntry]:
        """Log a stored decision and call the hooks; the entries about it for the audit log."""
        schedule, entries = decision.schedule, []
        if decision.broken is not None:
            entries.append(disabled(schedule, decision.broken, now))
        if decision.dropped:
            fires = "1 missed fire is" if decision.dropped == 1 else f"{decision.dropped} missed fires are"
            missed = f"{fires} not caught up (missed={schedule.missed})"
            log.warning("schedule %s: %s", key_of(schedule), missed)
            entries.append(entry("schedule.missed", schedule, missed, now))
        if decision.skipped:
            log.warning(
                "schedule %s: %d fires skipped, the previous run has not finished (overlap=%s)",
                key_of(schedule),
                decision.skipped,
                schedule.overlap,
            )
        if self._runtime.hooks.wants("schedule.fired"):
            for job in jobs:
                event = Event(name="schedule.fired", at=now, job=job_of(job, now), schedule=schedule.name)
                self._runtime.hooks.emit(event)
        return entries

    def _made(
        self, before: Schedule, decision: FireDecision, tasks: Mapping[str, Options]
    ) -> tuple[FireDecision, tuple[NewJob, ...]]:
        """The decision with its jobs; a schedule whose jobs cannot be made is disabled."""
        schedule = decision.schedule
        task, settings = tasks.get(schedule.task, NO_OPTIONS), self._runtime.settings
        try:
            return decision, tuple(scheduled_job(schedule, fire, task, settings) for fire in decision.fires)
        except OptionError as error:
            return switched_off(before, f"its jobs cannot be made: {error}"), ()

    async def _cancel_previous(self, decision: FireDecision, now: datetime) -> None:
        """Only after the fire is stored: a scheduler that came too late must not cancel another's run."""
        schedule, began = decision.schedule, decision.fires[-1].at
        where = JobFilter(schedule=schedule.name, tenant=schedule.tenant, states=tuple(LIVE))
        live = (await self._store.jobs(where, PageRequest(limit=MOST_PREVIOUS, newest_first=False))).items
        previous = tuple(job.id for job in live if job.scheduled_for is None or job.scheduled_for < began)
        edit = cancel(f"replaced by the next run of schedule {schedule.name}", now)
        await self._store.edit(previous, edit, now)

    async def _calendars(self, schedules: Sequence[Schedule]) -> dict[str, Calendar]:
        names = {s.calendar for s in schedules if s.calendar is not None}
        found = {name: await load(self._store, name) for name in names}
        return {name: calendar for name, calendar in found.items() if calendar is not None}


def disabled(schedule: Schedule, why: str, now: datetime) -> AuditEntry:
    log.error("schedule %s is disabled: %s", key_of(schedule), why)
    return entry("schedule.disabled_by_error", schedule, why, now)


def entry(action: str, schedule: Schedule, message: str, now: datetime) -> AuditEntry:
    return AuditEntry(
        action=action,
        at=now,
        actor="scheduler",
        tenant=schedule.tenant,
        object=f"schedule:{key_of(schedule)}",
        message=message[:LONGEST_MESSAGE],
    )


def held_back(schedule: Schedule, gates: Sequence[Gate], now: datetime) -> FireDecision | None:
    """A paused schedule keeps its next fire; once it is resumed, its ``missed`` policy decides."""
    gate = over_schedule(gates, schedule.tenant, schedule.name)
    if gate is None or not schedule.enabled or (schedule.next_run_at is None and not schedule.held):
        return None  # one that was never computed is computed first: a pause loses none of its fires
    again_at = now + timedelta(seconds=CHECK_PAUSED_S)
    if gate.until_at is not None:
        again_at = min(again_at, gate.until_at)
    return FireDecision(schedule=msgspec.structs.replace(schedule, check_at=again_at))


def scheduled_job(schedule: Schedule, fire: DueFire, task: Options, settings: Settings) -> NewJob:
    """The job of one fire. What the schedule leaves open is as the task says."""
    return NewJob(
        id=job_id(schedule.id, fire.at),
        task=schedule.task,
        payload_json=schedule.payload_json,
        queue=schedule.queue or task.queue or "default",
        tenant=schedule.tenant,
        priority=schedule.priority if schedule.priority is not None else task.priority or 0,
        max_attempts=schedule.max_attempts or task.max_attempts or settings.max_attempts,
        timeout=schedule.timeout,
        auto_remove=bool(task.auto_remove),
        tags=task.tags or (),
        origin=fire.origin,
        schedule=schedule.name,
        scheduled_for=fire.at,
        expires_at=expiry(task, fire.at),
        keep=task.keep,
        concurrency_key=concurrency_key(task, schedule.payload_json, settings.secret_fields),
        units=task.units,
        price=task.price,
    )
