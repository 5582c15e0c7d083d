"""``rota top``: queues, running jobs and failures, live on a terminal, with keys to pause and resume."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import click
import msgspec

from ...errors import RotaError
from ...model import Scope, State, gate_id
from ...operate.requests import ActivityRequest, GateRequest, JobsRequest
from ...operate.views import CurrentActor
from ...runtime.service import pause
from ...terminal.text import utc_time
from ..parts.full_screen import FullScreen, keys, usable
from ..parts.pause_options import subject
from ..parts.target import Target, pass_target, target_options
from ..parts.top_screen import TopAction, TopScreen, TopSnapshot, fullest, press, throughput
from ..parts.top_view import render

if TYPE_CHECKING:
    from ...operate import Operations

REASON = "from rota top"
SHOWN = 50
SHOWN_LIMITS = 8


@click.command()
@click.option("--interval", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True,
              metavar="SECONDS", help="Refresh interval.")  # fmt: skip
@target_options
@pass_target
def top(target: Target, interval: float) -> None:
    """Show queues, the fullest limits, running jobs and failures, live.

    Keys: q quits, p pauses or resumes everything, the arrow keys select a queue, Space pauses or resumes
    it, ? shows help.
    """
    if not usable():
        raise click.UsageError("rota top needs a terminal. For programs: rota stats --json")
    target.operations(lambda operations: _live(operations, interval))


async def _live(operations: Operations, interval: float) -> None:
    me = await operations.system.me()
    first = await take_snapshot(operations, me)
    with FullScreen() as terminal:
        await Top(operations, me, terminal, interval, first).run()


async def take_snapshot(operations: Operations, me: CurrentActor) -> TopSnapshot:
    """What this caller may see; one request after the other, on one connection."""
    stats = await operations.system.stats()
    workers = jobs_per_s = failures_per_min = None
    if "read.shared" in me.permissions:
        workers = sum(worker.state != "lost" for worker in (await operations.system.workers()).items)
        buckets = (await operations.system.activity(ActivityRequest(hours=0.1, step_s=60))).items
        jobs_per_s, failures_per_min = throughput(buckets, stats.now)
    gates = (await operations.gates.list()).items
    failed = (await operations.jobs.list(JobsRequest(state=(State.FAILED,), limit=SHOWN))).items
    running = await operations.jobs.list(JobsRequest(state=(State.RUNNING,), limit=SHOWN, order="oldest"))
    return TopSnapshot(
        place=me.store or f"tenant {me.tenant}",
        now=stats.now,
        due=sum(depth.due for depth in stats.queues.values()),
        running=stats.running,
        workers=workers,
        jobs_per_s=jobs_per_s,
        failures_per_min=failures_per_min,
        gate=next((gate for gate in gates if gate.scope == "all"), None),
        queues=tuple((await operations.system.queues()).items),
        limits=fullest((await operations.limits.list()).items, SHOWN_LIMITS),
        running_jobs=tuple(running.items),
        failures=tuple(sorted(failed, key=lambda job: job.finished_at or job.created_at, reverse=True)),
    )


class Top:
    """Paints after each new snapshot, key or change of size."""

    def __init__(
        self,
        operations: Operations,
        me: CurrentActor,
        terminal: FullScreen,
        interval: float,
        first: TopSnapshot,
    ) -> None:
        self._operations, self._me, self._terminal, self._interval = operations, me, terminal, interval
        self._screen = TopScreen(snapshot=first)
        self._stop, self._wake = asyncio.Event(), asyncio.Event()
        self._busy = asyncio.Lock()  # a connection to a server takes one request at a time
        self._actions: asyncio.Queue[TopAction] = asyncio.Queue()

    async def run(self) -> None:
        """Until q, or a signal that ends the program."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._terminal.keyboard, self._read)
        handlers = {
            signal.SIGINT: self._quit,
            signal.SIGTERM: self._quit,
            signal.SIGHUP: self._quit,
            signal.SIGWINCH: self._wake.set,
            signal.SIGTSTP: self._suspend,
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            async with asyncio.TaskGroup() as group:
                others = [
                    group.create_task(self._keep_refreshing()),
                    group.create_task(self._carry_out_actions()),
                ]
                await self._paint()
                for task in others:
                    task.cancel()
        finally:
            loop.remove_reader(self._terminal.keyboard)
            for number in handlers:
                loop.remove_signal_handler(number)

    async def _paint(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                self._terminal.paint(render(self._screen, *self._terminal.size()))
            except OSError:  # the terminal is gone
                return
            await self._wake.wait()

    async def _keep_refreshing(self) -> None:
        while not await pause(self._interval, self._stop):
            await self._refresh()

    async def _refresh(self) -> None:
        try:
            async with self._busy:
                snapshot = await take_snapshot(self._operations, self._me)
            self._show(snapshot=snapshot, error="")
        except RotaError as error:
            seen = utc_time(self._screen.snapshot.now)
            self._show(error=f"Out of date since {seen}: {error}")

    async def _carry_out_actions(self) -> None:
        while True:
            action = await self._actions.get()
            try:
                async with self._busy:
                    await carry_out(self._operations, action)
                done = "Paused" if action.verb == "pause" else "Resumed"
                what = subject("all" if action.queue is None else "queue", action.queue)
                self._show(note=f"{done} {what}.")
            except RotaError as error:
                self._show(note=str(error))
            await self._refresh()

    def _show(self, **changes: object) -> None:
        self._screen = msgspec.structs.replace(self._screen, **changes)
        self._wake.set()

    def _read(self) -> None:
        try:
            data = os.read(self._terminal.keyboard, 1024)
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            self._quit()
        for key in keys(data):
            self._screen, action = press(self._screen, key)
            if action is not None and action.verb == "quit":
                self._quit()
            elif action is not None:
                self._actions.put_nowait(action)
        self._wake.set()

    def _quit(self) -> None:
        self._stop.set()
        self._wake.set()

    def _suspend(self) -> None:
        """Ctrl-Z: return the terminal to the shell until the shell resumes this program."""
        self._terminal.leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.enter()
        self._wake.set()


async def carry_out(operations: Operations, action: TopAction) -> None:
    scope: Scope = "all" if action.queue is None else "queue"
    if action.verb == "pause":
        await operations.gates.pause(GateRequest(scope=scope, name=action.queue, reason=REASON))
    else:
        await operations.gates.resume(gate_id(scope, action.queue))
