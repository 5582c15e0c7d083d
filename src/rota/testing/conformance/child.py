"""The far side of the crash rules: ``python -m rota.testing.conformance.child``, an order on standard input.

Every action writes one line per acknowledgement, at once. ``die`` ends the process in the middle of a call,
at a chosen step: the parent then looks at what is left. Must never decide anything; instants are given.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from ...core.jobs import lifecycle
from ...model import AuditEntry, Firing, JobId, NewJob, Schedule, Settlement, State
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import T0, at, change, want

RAN_THROUGH = 0  # exit codes of a process that was to die
DIED = 9
FAILED = 1
FAR = 1 << 60
BATCH = 3  # jobs in one insert


class Order(msgspec.Struct):
    """What the parent asks for."""

    url: str
    factory: str
    action: str
    ids: list[JobId] = []
    jobs: list[NewJob] = []
    settlements: list[Settlement] = []
    entries: list[AuditEntry] = []
    firings: list[Firing] = []
    schedules: list[Schedule] = []
    count: int = 0
    worker: str = "child"
    verb: str = ""


def report(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# --- acknowledgements ------------------------------------------------------------------------------


async def acknowledge_inserts(store: Store, order: Order) -> None:
    for job in order.jobs:
        await store.insert([job], T0)
        report(job.id)


async def acknowledge_settlements(store: Store, order: Order) -> None:
    for settlement in order.settlements:
        assert not await settle(store, [settlement], at(1))
        report(settlement.id)


async def acknowledge_fires(store: Store, order: Order) -> None:
    for firing in order.firings:
        assert not await store.fire([firing], at(1))
        report(firing.schedule.id)


async def acknowledge_schedules(store: Store, order: Order) -> None:
    for schedule in order.schedules:
        assert await store.put_schedules([schedule], T0) == [1]
        report(schedule.id)


async def acknowledge_edits(store: Store, order: Order) -> None:
    for id in order.ids:
        assert await store.edit((id,), lifecycle.cancel("crash", at(1)), at(1))
        report(id)


async def acknowledge_documents(store: Store, order: Order) -> None:
    for number in range(order.count):
        assert await store.put_document("crash", f"key-{number}", "{}", 0, T0) == 1
        report(f"key-{number}")


async def acknowledge_audit(store: Store, order: Order) -> None:
    for entry in order.entries:
        await store.append_audit([entry])
        report(entry.object or "")


# --- working beside others -------------------------------------------------------------------------


async def work(store: Store, order: Order) -> None:
    """Claim and settle until nothing is left; a line per settled job."""
    while jobs := await claim(store, want(order.count or 5, worker=order.worker), at(1)):
        refused = await settle(store, [change(job, State.SUCCEEDED) for job in jobs], at(2))
        for job in jobs:
            if job.id not in refused:
                report(job.id)


async def hold(store: Store, order: Order) -> None:
    """Claim, report which, and keep them until killed."""
    for job in await claim(store, want(order.count, worker=order.worker), at(1)):
        report(job.id)
    report("held")
    await asyncio.Event().wait()


async def insert_all(store: Store, order: Order) -> None:
    await store.insert(order.jobs, T0)
    report("inserted")


async def settle_all(store: Store, order: Order) -> None:
    assert not await settle(store, order.settlements, at(1))
    report("settled")


# --- dying in the middle ---------------------------------------------------------------------------


def die(order: Order) -> None:
    """Carry the verb out on each item in a process of its own that dies on the way; a line per exit code.

    The first item comes through and shows how many steps the verb has; the others die at steps that are
    spread over all of them, and a little beyond.
    """
    acts: dict[str, Callable[[Store, int], Awaitable[Any]]] = {
        "settle": lambda store, n: settle(store, [order.settlements[n]], at(1)),
        "fire": lambda store, n: store.fire([order.firings[n]], at(1)),
        "insert": lambda store, n: store.insert(order.jobs[n * BATCH : (n + 1) * BATCH], T0),
        "claim": lambda store, n: claim(store, want(1, worker="dying", queues=(f"q{n}",)), at(1)),
    }
    act = acts[order.verb]
    _made(order)  # import the driver once, before the processes part
    steps, code = _forked(order, partial(_item, act, 0), FAR)
    report(str(code))
    for number in range(1, order.count):
        last = 1 + steps * number // (order.count - 2)
        report(str(_forked(order, partial(_item, act, number), last)[1]))


def _item(act: Callable[[Store, int], Awaitable[Any]], number: int, store: Store) -> Awaitable[Any]:
    return act(store, number)


def _forked(order: Order, act: Callable[[Store], Awaitable[Any]], last: int) -> tuple[int, int]:
    """The steps that the act took in a process of its own, 0 if it died; and that process's exit code."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _die_at(last, order, act, writer)
    os.close(writer)
    with os.fdopen(reader) as answer:
        steps = int(answer.read() or 0)
    _, status = os.waitpid(pid, 0)
    return steps, os.waitstatus_to_exitcode(status)


def _die_at(last: int, order: Order, act: Callable[[Store], Awaitable[Any]], writer: int) -> None:
    """Run the act and die at its ``last`` call or return, in whichever thread that is."""
    counter = _Counter(last)
    threading.setprofile(counter)
    sys.setprofile(counter)

    async def run() -> None:
        store = _made(order)
        await store.open()
        counter.armed = True
        await act(store)
        counter.armed = False
        os.write(writer, str(counter.seen).encode())
        os._exit(RAN_THROUGH)  # without a word to the store: what it acknowledged must be there

    try:
        asyncio.run(run())
    finally:
        os._exit(FAILED)


class _Counter:
    """A profile function that counts what any thread calls, and ends the process at the chosen one."""

    def __init__(self, last: int) -> None:
        self.armed = False
        self.seen = 0
        self._last = last

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if self.armed:
            self.seen += 1
            if self.seen >= self._last:
                os._exit(DIED)


# --- the program -----------------------------------------------------------------------------------

ACTIONS: dict[str, Callable[[Store, Order], Awaitable[None]]] = {
    function.__name__: function
    for function in (
        acknowledge_inserts,
        acknowledge_settlements,
        acknowledge_fires,
        acknowledge_schedules,
        acknowledge_edits,
        acknowledge_documents,
        acknowledge_audit,
        work,
        hold,
        insert_all,
        settle_all,
    )
}


def _made(order: Order) -> Store:
    module, _, name = order.factory.partition(":")
    store: Store = getattr(importlib.import_module(module), name)(order.url)
    return store


async def _serve(order: Order) -> None:
    store = _made(order)
    await store.open()
    await ACTIONS[order.action](store, order)
    await store.close()


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    if order.action == "die":
        die(order)
    else:
        asyncio.run(_serve(order))


if __name__ == "__main__":
    main()
