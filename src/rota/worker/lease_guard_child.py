"""The lease guard: a process beside a worker that renews its leases while the worker cannot.

Run by ``lease_guard.py`` as a plain file, with the standard library alone: rota and the driver are
imported when they are needed first. The worker writes to its standard input, a socket whose end means that
the worker has ended; it then ends too. Holds no connection while the worker renews its leases itself, and
never renews for a worker that is dead, stopped or idle, nor for longer than ``MOST_LEASES`` leases.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import sys
import time
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

LONGEST_MESSAGE = 1 << 20
QUIET = 0.1  # of a lease: a worker that is silent for longer is checked, for twice as long is late
DUE = 0.5  # of a lease: what is not renewed for this long is renewed here
MOST_LEASES = 10  # the longest silence in which leases are kept
IMPORT_AT_ONCE_S = 10.0  # importing takes up to a second, too much of a shorter lease
AT_WORK = 0.05  # of a core, by one thread: one that only waits for the interpreter uses 1 %
STUCK_S = 30  # a renewal that has not ended by then ends this process
PAGE = 500
TICKS = os.sysconf("SC_CLK_TCK")

monotonic = partial(time.clock_gettime, time.CLOCK_BOOTTIME)  # that of rota.runtime.clock


class Thread(NamedTuple):
    """One thread of the worker, at one moment."""

    state: str  # of proc(5): R, S, D, T …
    cpu_s: float


Snapshot = dict[str, Thread]


def threads_of(pid: int) -> Snapshot:
    """The threads of a process now; none if it has ended."""
    found: Snapshot = {}
    with suppress(OSError):
        for tid in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{tid}/stat") as file:  # it may have just ended
                fields = file.read().rpartition(")")[2].split()
                found[tid] = Thread(fields[0], (int(fields[11]) + int(fields[12])) / TICKS)
    return found


def trouble(before: Snapshot, after: Snapshot, seconds: float) -> str | None:
    """Why nothing may be renewed for a process, after two snapshots of it; None: it is at work."""
    states = {thread.state for thread in after.values()}
    if not states - set("ZX"):
        return "has ended"
    if states & set("Tt"):
        return "is stopped"
    if states & set("RD"):  # also if it gets no share of a busy processor
        return None
    used = [now.cpu_s - before[tid].cpu_s for tid, now in after.items() if tid in before]
    return None if max(used, default=0.0) >= AT_WORK * seconds else "does nothing"


class Guard:
    """Decides when to renew: from the worker's last sign of life, and from what ``/proc`` says about it."""

    def __init__(self, first: dict[str, Any]) -> None:
        self.url: str = first["url"]
        self.worker: str = first["worker"]
        self.document: str = first["document"]
        self.lease_s: float = first["lease_s"]
        self._pid: int = first["pid"]
        self._log: str | None = first["log"]
        self._message_at = self._renewed_at = self._checked_at = monotonic()
        self._snapshot: Snapshot | None = None
        self._kept: list[tuple[str, int]] | None = None  # while it renews
        self._logged: str | None = None  # about this silence
        sys.path[:] = first["path"]
        if self.lease_s < IMPORT_AT_ONCE_S:
            _import()

    @property
    def next_check_s(self) -> float:
        """The seconds until the next check of the worker, unless a message arrives before."""
        if self._snapshot is None:
            return self._message_at + QUIET * self.lease_s - monotonic()
        late_at = max(self._message_at + 2 * QUIET * self.lease_s, self._renewed_at + DUE * self.lease_s)
        return max(late_at, self._checked_at + QUIET * self.lease_s) - monotonic()

    def on_message(self, renewed_at: float) -> None:
        """The worker's own thread is at work; its oldest lease was renewed then."""
        if self._kept is not None:
            self._write_log(f"renews its leases itself again, after {monotonic() - self._message_at:.1f} s")
        self._message_at, self._renewed_at = monotonic(), renewed_at
        self._snapshot = self._kept = self._logged = None

    def check(self) -> None:
        """The worker is silent: find out whether it is at work, and renew its leases if they are due."""
        now, threads = monotonic(), threads_of(self._pid)
        if self._snapshot is None:
            self._snapshot, self._checked_at = threads, now
            _import()
            return
        reason = trouble(self._snapshot, threads, now - self._checked_at)
        if now - self._message_at > MOST_LEASES * self.lease_s:
            reason = f"has been silent for {MOST_LEASES} leases"
        self._snapshot, self._checked_at = threads, now
        if reason is None:
            self._renew()
        elif self._logged != reason:
            self._write_log(f"{reason}: its leases are not renewed, and other workers take its jobs over")
            self._logged = reason

    def _renew(self) -> None:
        import asyncio

        sent_at = monotonic()
        signal.alarm(int(self.lease_s) + STUCK_S)  # the worker starts another guard
        try:
            kept = asyncio.run(asyncio.wait_for(_renew(self), self.lease_s / 3))
        except Exception as error:  # whatever it is, the next check tries again
            if self._logged != "failed":
                self._write_log(f"is too busy to renew its leases, and so is its guard unable to: {error!r}")
            self._logged = "failed"
            return
        finally:
            signal.alarm(0)
        self._renewed_at = sent_at
        if self._kept is None and kept:
            late = f"silent for {sent_at - self._message_at:.1f} s"
            self._write_log(f"is too busy to renew its leases ({late}): {len(kept)} renewed for it")
        report = {"at": sent_at, "kept": None if kept == self._kept else kept}
        try:
            os.write(0, json.dumps(report).encode())
        except OSError:  # full, or too long: then the worker gives up what it cannot know to be kept
            kept = []
        self._kept = kept

    def _write_log(self, text: str) -> None:
        """One line on standard error, in the form of the worker's own log."""
        message = f"lease guard: worker {self.worker} {text}"
        if self._log == "json":
            from rota.runtime.clock import Clock

            fields = {"at": Clock().now().isoformat(), "level": "warning", "logger": "rota.worker"}
            message = json.dumps({**fields, "message": message})
        if self._log is not None:
            os.write(2, message.encode() + b"\n")


def _import() -> None:
    """What renewing needs, ahead of the moment when time is short."""
    import asyncio  # noqa: F401

    import rota.runtime.clock
    import rota.store.open  # noqa: F401


async def _renew(guard: Guard) -> list[tuple[str, int]]:
    """Renew what the store says the worker holds; the leases that were renewed.

    The store knows a job that was claimed a moment before the worker stopped responding. The connection is
    new each time, so that it cannot be stale.
    """
    from rota.model import Heartbeat, Lease
    from rota.store.open import open_store

    store = open_store(guard.url)
    try:
        await store.open()
        documents = await store.documents("worker", guard.worker)
        document = documents[0].body if documents else guard.document
        kept: list[tuple[str, int]] = []
        async for jobs in _held(store, guard.worker):
            leases = [Lease(id=job.id, lease_token=job.lease_token) for job in jobs]
            heartbeat = Heartbeat(
                worker=guard.worker, document=document, lease_s=guard.lease_s, leases=leases
            )
            reply = await store.heartbeat(heartbeat, None)
            kept += [(job.id, job.lease_token) for job in jobs if job.id not in reply.lost]
        return kept
    finally:
        await store.close()


async def _held(store: Any, worker: str) -> Any:
    """The running jobs of the worker, in pages."""
    from rota.model import JobFilter, PageRequest, State

    held, cursor = JobFilter(states=(State.RUNNING,), worker=worker), None
    while True:
        page = await store.jobs(held, PageRequest(limit=PAGE, cursor=cursor, brief=True))
        if page.items:
            yield page.items
        if (cursor := page.next) is None:
            return


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # sent to all processes of a service: the worker decides
    os.set_blocking(0, False)
    incoming = select.poll()
    incoming.register(0, select.POLLIN)
    worker = os.getppid()
    incoming.poll()
    first = os.read(0, LONGEST_MESSAGE)
    guard = Guard(json.loads(first)) if first else None
    while guard is not None:
        if incoming.poll(max(guard.next_check_s, 0.0) * 1000):
            try:
                message = os.read(0, LONGEST_MESSAGE)
            except OSError:  # the worker has ended without having read everything
                return
            if not message:
                return
            guard.on_message(*struct.unpack("d", message))
        elif os.getppid() != worker:  # a process that a task has forked keeps the socket open
            return
        else:
            guard.check()


if __name__ == "__main__":
    main()
