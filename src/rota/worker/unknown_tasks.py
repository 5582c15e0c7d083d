"""Jobs of tasks that no running worker has: noticed, timed in the store, and failed after a while.

Owns the documents that time an absence. A job that is failed here is claimed first, so that it ends like any
other, and never runs. Pauses hold: a paused job is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from ..core.jobs.absence import Absence, absent_tasks, prolonged, unknown_task
from ..core.jobs.gates import narrow_claim
from ..core.jobs.lifecycle import ExecutionReport, NeverBegun, decide
from ..core.jobs.why import WorkerFacts
from ..model import ClaimRequest, Document, DueLane, DueLanes, Job, State
from ..runtime.clock import Clock
from ..store.calls import claim, settle
from ..store.protocol import Store
from .environment import WorkerEnvironment

log = logging.getLogger("rota.worker")

KIND = "absence"
SAMPLE = 5000  # queued jobs that are read, the oldest
BATCH = 200  # jobs that fail in one step
WRITE_S = 30.0  # the least between two writes about one task
HOLDING = "+unknown"  # after the id of a worker: the holder of what it is about to fail
WORKER_LOST_S = 60.0


def is_live(document: Document, clock: Clock, lease_s: float) -> bool:
    """Whether this worker has sent a heartbeat recently."""
    silent_s = (clock.now() - document.updated_at).total_seconds()
    return silent_s < max(WORKER_LOST_S, 2 * lease_s)


async def unserved(store: Store, clock: Clock, lease_s: float) -> Mapping[str, int]:
    """Tasks of due jobs that no running worker has, with how many of the oldest due jobs wait for them."""
    lanes = await store.survey(DueLanes(clock.now(), SAMPLE))
    return _waiting(lanes, await _live_workers(store, clock, lease_s) if lanes else [])


class UnknownTasks:
    """The check of one worker. Knows what it has warned of; all else is in the store."""

    def __init__(self, environment: WorkerEnvironment) -> None:
        self._environment = environment
        self._store = environment.store
        self._clock = environment.clock
        self._warned: frozenset[str] = frozenset()

    async def check(self) -> bool:
        """Warn, time and fail; whether nothing is left to fail."""
        now = self._clock.now()
        lanes = await self._store.survey(DueLanes(now, SAMPLE))
        workers = [self._self(), *await self._others()] if lanes else []
        waiting = _waiting(lanes, workers)
        for task in sorted(waiting.keys() - self._warned):
            log.warning(
                "no running worker has task %r (due jobs waiting for it: %d or more)", task, waiting[task]
            )
        self._warned = frozenset(waiting)
        after_s = self._environment.settings.unknown_task_after_s
        absent = absent_tasks(lanes, workers) if after_s is not None else {}
        known = {task for worker in workers for task in worker.tasks}
        is_sampled = sum(one.due for one in lanes) >= SAMPLE
        absences = await self._time(absent, known if is_sampled else None, waiting)
        failed = 0
        for task, absence in absences.items():
            if after_s is not None and absence.absent_s >= after_s and failed < BATCH:
                queues = tuple(lane.queue for lane in absent[task])
                failed += len(await self._fail(task, queues, absence, known))
        return failed < BATCH

    async def _time(
        self, absent: Mapping[str, Sequence[DueLane]], back: set[str] | None, waiting: Mapping[str, int]
    ) -> dict[str, Absence]:
        """Count on the time of each absence, and forget those that are over.

        ``back``: tasks that a worker has, if not all due jobs were read: others may wait among the rest.
        """
        now = self._clock.now()
        timed = {document.key: document for document in await self._store.documents(KIND)}
        found: dict[str, Absence] = {}
        for task in absent:
            document = timed.get(task)
            if document is None:
                found[task] = Absence(since=now)
                await self._write(task, found[task], 0)
                continue
            found[task] = prolonged(_read(document), document.updated_at, now)
            if now - document.updated_at >= timedelta(seconds=WRITE_S):
                await self._write(task, found[task], document.version)
        for task in timed.keys() - waiting.keys():
            if back is None or task in back:
                await self._store.delete_document(KIND, task)
        return found

    async def _write(self, task: str, absence: Absence, expected: int) -> None:
        """Of several workers one writes; the others' time is not added to it."""
        body = msgspec.json.encode(absence).decode()
        await self._store.put_document(KIND, task, body, expected, self._clock.now())

    async def _fail(
        self, task: str, queues: tuple[str, ...], absence: Absence, known: set[str]
    ) -> Sequence[Job]:
        environment, clock = self._environment, self._clock
        options, gates = environment.options, environment.gates
        await gates.refresh(options.poll_s)
        wanted = ClaimRequest(
            worker=f"{environment.worker}{HOLDING}",
            limit=BATCH,
            lease_s=options.lease_s,
            queues=queues,
            tasks=(task,),
        )
        request = narrow_claim(wanted, gates.active())
        jobs = () if request is None else await claim(self._store, request, clock.store_now)
        if not jobs:
            return ()
        fault = unknown_task(task, absence, known)
        outcome = NeverBegun(state=State.FAILED, fault=fault, action="job.unknown_task")
        report = ExecutionReport(worker=environment.worker)
        settlements = [decide(job, outcome, clock.now(), 0.0, None, report) for job in jobs]
        refused = await settle(self._store, settlements, clock.store_now)
        log.error("failed %d jobs of task %r: %s", len(jobs) - len(refused), task, fault.message)
        for job, settlement in zip(jobs, settlements, strict=True):
            if job.id not in refused:
                environment.metrics.runs["failed"] += 1
                ended = msgspec.structs.replace(
                    job, state=State.FAILED, attempt=settlement.attempt, error_json=settlement.error_json
                )
                environment.reporter.emit("job.failed", ended, ended.error)
        return jobs

    def _self(self) -> WorkerFacts:
        """This worker, which may not have sent a heartbeat yet."""
        options = self._environment.options
        return WorkerFacts(
            id=self._environment.worker,
            tasks=tuple(self._environment.registry.names),
            queues=options.queues,
            exclude_queues=options.exclude_queues,
            concurrency=options.concurrency,
            running=0,
        )

    async def _others(self) -> list[WorkerFacts]:
        return await _live_workers(self._store, self._clock, self._environment.options.lease_s)


async def _live_workers(store: Store, clock: Clock, lease_s: float) -> list[WorkerFacts]:
    live = [one for one in await store.documents("worker") if is_live(one, clock, lease_s)]
    return [found for one in live if (found := _facts(one)) is not None]


def _facts(document: Document) -> WorkerFacts | None:
    try:
        record = msgspec.json.decode(document.body, type=_Record)
    except msgspec.DecodeError:  # of another version, or edited by hand
        return None
    return WorkerFacts(
        id=document.key,
        tasks=record.tasks,
        queues=record.queues,
        exclude_queues=record.exclude_queues,
        concurrency=1,
        running=0,
    )


class _Record(msgspec.Struct):
    """What a worker's document says about what it serves."""

    tasks: tuple[str, ...] = ()
    queues: tuple[str, ...] | None = None
    exclude_queues: tuple[str, ...] = ()


def _waiting(lanes: Sequence[DueLane], workers: Sequence[WorkerFacts]) -> dict[str, int]:
    absent = absent_tasks(lanes, workers, served_only=False)
    return {task: sum(lane.due for lane in of_task) for task, of_task in absent.items()}


def _read(document: Document) -> Absence:
    try:
        return msgspec.json.decode(document.body, type=Absence)
    except msgspec.DecodeError:  # edited by hand: it starts again
        return Absence(since=document.updated_at)
