"""The worker: one process that claims jobs, runs them and stores their outcomes.

Owns the order in which its parts start and stop. Nothing is held while a task runs but the lease of its
job, and nothing is claimed before the gates are known. Never ends because the store is unavailable.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine
from typing import Any

import msgspec

from ..config import Settings
from ..errors import StoreError
from ..runtime.clock import Clock
from ..runtime.events import Hooks
from ..runtime.fleet import Fleet, WorkerSeen
from ..runtime.gate_watch import GateWatch
from ..runtime.metrics import WorkerMetrics
from ..runtime.service import Tick, pause, repeat
from ..runtime.service_records import ServiceRecord, ServiceRecords, ServiceStatus, listener_status
from ..schedules.scheduler import Scheduler
from ..store.protocol import Store
from ..tasks.published import PublishedTasks
from ..tasks.registry import Registry
from ..version import __version__
from .context import LogCapture
from .environment import WorkerEnvironment
from .heartbeats import HeartbeatThread
from .loop import TurnLoop
from .maintenance import Maintenance
from .options import WorkerOptions
from .reporting import JobReporter
from .shutdown import Shutdown
from .turns import Turns

log = logging.getLogger("rota.worker")

SERVICES_STOP_S = 1.0
SIGN_OFF_S = 2.0
GATES_SHARE = 0.8  # of the age that a claim allows
PUBLISH_EVERY_S = 30.0  # what was declared meanwhile; costs nothing if there is nothing new
LIMITS_S = 10.0  # to wait for the limits that tasks declare; a store that does not take them holds up no job
GATES_WHEN_IDLE = 7  # poll intervals: longer than those between two polls


class Worker:
    """One worker, from ``run`` until it is drained.

    Wires turns, heartbeats, maintenance and scheduler together and starts and stops them. Never touches a
    job itself: turns claim and settle, slots run.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        clock: Clock,
        hooks: Hooks,
        settings: Settings,
        options: WorkerOptions,
        identity: str,
        records: ServiceRecords,
        published: PublishedTasks,
        scheduler: Scheduler | None = None,
    ) -> None:
        self.id = identity
        self.options = options
        self.was_forced = False
        self.metrics = WorkerMetrics()
        self.scheduler = scheduler
        self._published = published
        if scheduler is not None:
            scheduler.metrics = self.metrics
        self._environment = WorkerEnvironment(
            worker=identity,
            store=store,
            registry=registry,
            clock=clock,
            settings=settings,
            options=options,
            gates=GateWatch(store, clock),
            fleet=Fleet(store, clock, self._seen),
            metrics=self.metrics,
            reporter=JobReporter(identity, clock, hooks, self.metrics),
            records=records,
        )
        self.reporter = self._environment.reporter
        self.turns = Turns(self._environment)
        self.slots = self.turns.slots
        self.records = self._environment.records
        self._reconnect = ServiceRecord("turns")
        self._loop = TurnLoop(self._environment, self.turns, self._reconnect)
        self._shutdown = Shutdown(self._environment, self.turns, self._reconnect)
        self._heartbeats: HeartbeatThread | None = None
        self._has_published = asyncio.Event()
        self._started_at = clock.now()
        self._environment.gates.changed = self._on_gates_changed
        if scheduler is not None:
            scheduler.fleet = self._environment.fleet

    # --- life ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until drained."""
        capture = LogCapture(self.id)
        logging.getLogger().addHandler(capture)
        if self.options.heartbeat_thread:
            self._heartbeats = HeartbeatThread(self._environment, self.slots, self._document)
        services = self._services()
        try:
            if self._heartbeats is not None:
                self._heartbeats.start()
            self.reporter.emit("worker.started")
            log.info("worker %s started: %s", self.id, self._summary())
            with self.records.showing(self._reconnect):
                await self._await_limits()
                await self._loop.run()
                await self._shutdown.run()
        finally:
            logging.getLogger().removeHandler(capture)
            await self._stop_parts(services)
            await self._sign_off()
            self.reporter.emit("worker.stopped")
            log.info("worker %s stopped (jobs run: %d)", self.id, self.finished)

    def drain(self) -> None:
        """Claim nothing more; finish what runs, within the shutdown timeout."""
        self.turns.drain()
        self._has_published.set()

    def force(self) -> None:
        """Release at once what runs."""
        self.was_forced = True
        self._shutdown.forced.set()
        self.drain()

    async def _stop_parts(self, services: list[asyncio.Task[None]]) -> None:
        ends: list[Coroutine[Any, Any, Any]] = [self.slots.close()]
        for service in services:
            service.cancel()
        if services:
            ends.append(asyncio.wait(services, timeout=SERVICES_STOP_S))
        if self._heartbeats is not None:
            ends.append(self._heartbeats.stop())
        await asyncio.gather(*ends)

    async def _sign_off(self) -> None:
        """Delete the worker's document, so that it is not listed as lost."""
        if self._reconnect.down_since is not None:
            return
        try:
            async with asyncio.timeout(SIGN_OFF_S):
                await self._environment.store.delete_document("worker", self.id)
        except (StoreError, TimeoutError) as error:
            log.debug("worker %s: its document could not be deleted: %s", self.id, error)

    # --- services --------------------------------------------------------------------------------

    def _services(self) -> list[asyncio.Task[None]]:
        stopping = self.turns.stopping
        fleet = self._environment.fleet
        steps: dict[str, Tick] = {"gates": self._check_gates, "fleet": fleet.read, "tasks": self._publish}
        if self.options.upkeep:
            steps |= Maintenance(self._environment, self.turns.changed.set).steps
        wakes = {"gates": self.turns.left_idleness, "fleet": fleet.read_now}
        if self.scheduler is not None and self.options.upkeep:
            steps["scheduler"] = self.scheduler.tick
            wakes["scheduler"] = self.scheduler.wake

        async def serve(name: str, step: Tick) -> None:
            record = ServiceRecord(name)
            with self.records.showing(record):
                await repeat(step, stopping, record, wakes.get(name))

        tasks = [asyncio.create_task(serve(*one), name="rota-service") for one in steps.items()]
        if "scheduler" in steps and self.scheduler is not None:
            tasks.append(asyncio.create_task(self.scheduler.listen(), name="rota-service"))
        return tasks

    async def _publish(self) -> float:
        """Let those who do not have the tasks' code know what they declare."""
        await self._published.publish(self._environment.store)
        self._has_published.set()
        return PUBLISH_EVERY_S

    async def _await_limits(self) -> None:
        """No job begins before the limits that the code declares are in force.

        A burst may end at once, and withdraws those that the code no longer declares before it does.
        """
        if self.options.burst or any(task.limit is not None for task in self._environment.registry):
            await pause(LIMITS_S, self._has_published)

    async def _check_gates(self) -> float:
        """Read the gates often enough for a claim not to have to; an idle worker reads them when it polls."""
        gates, poll_s = self._environment.gates, self.options.poll_s
        if self.is_idle:
            await gates.refresh(poll_s * GATES_WHEN_IDLE)
            return self._environment.fleet.poll_s(poll_s)
        await gates.refresh(poll_s / 2)
        return poll_s * GATES_SHARE

    def _on_gates_changed(self) -> None:
        if self._environment.gates.active():  # over what has not started: let the next claim choose
            self.turns.release_waiting()
        if self._heartbeats is not None:
            self._heartbeats.send_soon()
        self.turns.changed.set()

    # --- what others see -------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """``running``, ``paused`` while everything is, or ``draining``."""
        if self.turns.stopping.is_set():
            return "draining"
        return "paused" if self._environment.gates.is_all_closed else "running"

    @property
    def is_idle(self) -> bool:
        return self.turns.is_idle

    @property
    def finished(self) -> int:
        """Attempts settled."""
        return self.reporter.finished

    @property
    def rejected(self) -> int:
        """Outcomes dropped because the lease was lost."""
        return self.reporter.rejected

    @property
    def released(self) -> int:
        """Executions that were started and released unfinished."""
        return self.reporter.released

    def _summary(self) -> str:
        queues = ", ".join(self.options.queues) if self.options.queues else "all queues"
        n = len(self._environment.registry.names)
        url = self._environment.store.url
        return f"{n} task{'s' * (n != 1)}, {queues}, {self.options.concurrency} at once, on {url}"

    def _statuses(self) -> list[ServiceStatus]:
        """When each service last succeeded; the listener belongs to the store."""
        now = self._environment.clock.now()
        silent_s = self._environment.store.gauges.get("listener_silent_s")
        found = self.records.statuses(now)
        return found if silent_s is None else [*found, listener_status(silent_s, now)]

    def _seen(self) -> WorkerSeen:
        options = self.options
        return WorkerSeen(
            id=self.id,
            queues=options.queues,
            exclude_queues=options.exclude_queues,
            tasks=tuple(self._environment.registry.names),
        )

    def _document(self) -> str:
        body = {
            "id": self.id,
            "name": self.options.name,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "queues": self.options.queues,
            "exclude_queues": self.options.exclude_queues,
            "tasks": self._environment.registry.names,
            "scheduler": self.scheduler is not None and self.options.upkeep,
            "concurrency": self.options.concurrency,
            "running": len(self.slots.running),
            "finished": self.finished,
            "state": self.state,
            "started_at": self._started_at,
            "version": __version__,
            "services": self._statuses(),
            "measures": self.metrics.snapshot(),
        }
        return msgspec.json.encode(body).decode()
