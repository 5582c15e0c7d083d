"""The worker's side of the lease guard: starts it, reports life to it, applies what it has renewed.

The heartbeat thread shares the interpreter with tasks and requests, and one that does not let go of it
starves the thread. The guard (``lease_guard_child.py``) shares nothing but the machine. Never decides
about a job: it moves ``renewed_at`` of executions whose leases the guard has renewed.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from ..runtime import systemd
from ..runtime.clock import monotonic
from ..store.open import open_store
from .environment import WorkerEnvironment
from .execution import Execution

log = logging.getLogger("rota.worker")

PROGRAM = Path(__file__).with_name("lease_guard_child.py")
ROOT = str(PROGRAM.parents[2])  # so that the guard imports the same rota
REPORT = 0.05  # of a lease: how often life is reported to the guard
MOST_STARTS = 5
LONGEST_REPORT = 1 << 20
END_S = 5.0


class Report(msgspec.Struct):
    """Guard to worker: what it renewed at this time of the monotonic clock, which both share."""

    at: float
    kept: list[tuple[str, int]] | None  # job and token; None: the same as in the last report


def can_guard(environment: WorkerEnvironment) -> bool:
    """Whether another process can renew these leases: see docs/howto/deploy.md."""
    store, settings = environment.store, environment.settings
    return (
        environment.options.lease_guard
        and sys.platform == "linux"
        and store.capabilities.shared
        and "python" in Path(sys.executable or "").name  # a frozen program would start itself again
        and not getattr(sys, "frozen", False)
        and open_store(settings.url).url == store.url
    )


class LeaseGuard:
    """One guard process. Without one, if it cannot be started: then the heartbeat thread is alone."""

    def __init__(self, environment: WorkerEnvironment, document: Callable[[], str]) -> None:
        self._environment = environment
        self._document = document
        self._lease_s = environment.options.lease_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._starts = 0
        self._reported_at = float("-inf")
        self._kept: frozenset[tuple[str, int]] = frozenset()
        self._kept_at = float("-inf")

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process, without waiting for it: its program is in the kernel's hands then."""
        self._starts += 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            ours.send(self._introduction())  # by the socket: the address may contain a password
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(PROGRAM)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=systemd.without(os.environ),
                start_new_session=True,  # Ctrl-C goes to the worker, which decides
            )
            self._socket = ours
        except OSError as error:
            ours.close()
            log.warning("worker %s has no lease guard: %s", self._environment.worker, error)
        finally:
            theirs.close()

    def _introduction(self) -> bytes:
        values = {
            "url": self._environment.settings.url,
            "worker": self._environment.worker,
            "document": self._document(),
            "lease_s": self._lease_s,
            "pid": os.getpid(),
            "path": [ROOT, *(path for path in sys.path if path)],
            "log": _log_format(),
        }
        return json.dumps(values).encode()

    def report_life(self, held: Iterable[Execution]) -> None:
        """The heartbeat thread is at work: the guard need not be. Restarts a guard that has died."""
        now = monotonic()
        if self._socket is None or now - self._reported_at < REPORT * self._lease_s:
            return
        self._reported_at = now
        oldest = min((one.renewed_at for one in held), default=now)
        try:
            self._socket.send(struct.pack("d", oldest))
        except BlockingIOError:
            log.debug("worker %s: its lease guard does not read", self._environment.worker)
        except OSError:
            self._restart()

    def _restart(self) -> None:
        code, worker = self._end(), self._environment.worker
        if self._starts < MOST_STARTS:
            log.warning("worker %s: its lease guard died (%s), starting another", worker, code)
            self.start()
        else:
            log.error("worker %s: its lease guard died (%s) again, continuing without one", worker, code)

    def apply_reports(self, held: Callable[[], Iterable[Execution]]) -> None:
        """Note what the guard has renewed while this process could not. From any thread."""
        with self._lock:
            while (report := self._read()) is not None:
                self._kept_at = report.at
                if report.kept is not None:
                    self._kept = frozenset(report.kept)
            if monotonic() - self._kept_at > self._lease_s:
                return
            for one in held():
                if one.renewed_at < self._kept_at and (one.job.id, one.job.lease_token) in self._kept:
                    one.renewed_at = self._kept_at

    def _read(self) -> Report | None:
        if self._socket is None:
            return None
        try:
            message = self._socket.recv(LONGEST_REPORT)
        except OSError:  # nothing to read, or no one to write it
            return None
        return msgspec.json.decode(message, type=Report) if message else None

    def stop(self) -> None:
        """End the process. Blocks until it has ended: it must not write the worker's document after that."""
        self._end()

    def _end(self) -> int | None:
        with self._lock:
            if self._socket is None or self._process is None:
                return None
            self._socket.close()
            self._socket = None
        try:
            return self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def _log_format() -> str | None:
    """How a line of this program's log looks: ``json`` or ``text``; None if a warning is not logged."""
    if not log.isEnabledFor(logging.WARNING):
        return None
    record = log.makeRecord(log.name, logging.WARNING, "", 0, "", (), None)
    with suppress(Exception):  # a formatter of the program's own
        if any(handler.format(record).startswith("{") for handler in logging.getLogger().handlers):
            return "json"
    return "text"
