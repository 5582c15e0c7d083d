"""``rota top``: what goes on, live on a terminal, and the switches at hand."""

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
from ..parts.top_screen import TopAction, TopScreen, TopSnapshot, pace, pressed
from ..parts.top_view import render

if TYPE_CHECKING:
    from ...operate import Operations

REASON = "from rota top"
SHOWN = 50


@click.command()
@click.option("--interval", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True, metavar="S",
              help="Look again after so many seconds.")  # fmt: skip
@target_options
@pass_target
def top(target: Target, interval: float) -> None:
    """Queues, running jobs and failures, live; q quits, ? helps.

    p pauses everything, the arrows choose a queue and the space bar pauses it.
    """
    if not usable():
        raise click.UsageError("rota top needs a terminal. For a program: rota stats --json")
    target.operations(lambda operations: _live(operations, interval))


async def _live(operations: Operations, interval: float) -> None:
    me = await operations.system.me()
    first = await look(operations, me)
    with FullScreen() as terminal:
        await Top(operations, me, terminal, interval, first).run()


async def look(operations: Operations, me: CurrentActor) -> TopSnapshot:
    """What there is to see for this caller; one question after the other, as a server takes them."""
    stats = await operations.system.stats()
    workers = speed = failing = None
    if "read.shared" in me.permissions:
        workers = sum(worker.state != "lost" for worker in (await operations.system.workers()).items)
        steps = (await operations.system.activity(ActivityRequest(hours=0.1, step_s=60))).items
        speed, failing = pace(steps, stats.now)
    gates = (await operations.gates.list()).items
    failed = (await operations.jobs.list(JobsRequest(state=(State.FAILED,), limit=SHOWN))).items
    running = await operations.jobs.list(JobsRequest(state=(State.RUNNING,), limit=SHOWN, order="oldest"))
    return TopSnapshot(
        place=me.store or f"tenant {me.tenant}",
        now=stats.now,
        due=sum(depth.queued for depth in stats.queues.values()),
        running=stats.running,
        workers=workers,
        jobs_per_s=speed,
        failures_per_min=failing,
        gate=next((gate for gate in gates if gate.scope == "all"), None),
        queues=tuple((await operations.system.queues()).items),
        running_jobs=tuple(running.items),
        failures=tuple(sorted(failed, key=lambda job: job.finished_at or job.created_at, reverse=True)),
    )


class Top:
    """Paints when there is something new: a glance, a key, another size."""

    def __init__(
        self,
        operations: Operations,
        me: CurrentActor,
        terminal: FullScreen,
        interval: float,
        first: TopSnapshot,
    ) -> None:
        self._operations, self._me, self._terminal, self._interval = operations, me, terminal, interval
        self._screen = TopScreen(glance=first)
        self._stop, self._wake = asyncio.Event(), asyncio.Event()
        self._asking = asyncio.Lock()  # a connection to a server takes one question at a time
        self._acts: asyncio.Queue[TopAction] = asyncio.Queue()

    async def run(self) -> None:
        """Until q, or a signal that ends programs."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._terminal.keyboard, self._read)
        handlers = {
            signal.SIGINT: self._quit,
            signal.SIGTERM: self._quit,
            signal.SIGHUP: self._quit,
            signal.SIGWINCH: self._wake.set,
            signal.SIGTSTP: self._step_aside,
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            async with asyncio.TaskGroup() as group:
                others = [group.create_task(self._keep_looking()), group.create_task(self._keep_acting())]
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

    async def _keep_looking(self) -> None:
        while not await pause(self._interval, self._stop):
            await self._look()

    async def _look(self) -> None:
        try:
            async with self._asking:
                glance = await look(self._operations, self._me)
            self._show(glance=glance, trouble="")
        except RotaError as error:
            seen = utc_time(self._screen.glance.now)
            self._show(trouble=f"This is what was seen at {seen}; since then: {error}")

    async def _keep_acting(self) -> None:
        while True:
            act = await self._acts.get()
            try:
                async with self._asking:
                    await carry_out(self._operations, act)
                what = subject("all" if act.queue is None else "queue", act.queue)
                self._show(note=f"{what} {'is paused' if act.verb == 'pause' else 'goes on'}.")
            except RotaError as error:
                self._show(note=str(error))
            await self._look()

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
            self._screen, act = pressed(self._screen, key)
            if act is not None and act.verb == "quit":
                self._quit()
            elif act is not None:
                self._acts.put_nowait(act)
        self._wake.set()

    def _quit(self) -> None:
        self._stop.set()
        self._wake.set()

    def _step_aside(self) -> None:
        """Ctrl-Z: the shell gets its terminal back until it brings us to the front again."""
        self._terminal.leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.enter()
        self._wake.set()


async def carry_out(operations: Operations, act: TopAction) -> None:
    scope: Scope = "all" if act.queue is None else "queue"
    if act.verb == "pause":
        await operations.gates.pause(GateRequest(scope=scope, name=act.queue, reason=REASON))
    else:
        await operations.gates.resume(gate_id(scope, act.queue))
