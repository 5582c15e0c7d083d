"""The API in a process of its own, beside a worker: the worker's side.

Neither can starve the other. Owns the listening socket, which outlives the process, and its restarts; reports
to it every second how the worker's services do. The other side is ``api_process_child.py``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from ..app import Rota
from ..errors import ConfigError
from ..runtime import systemd
from ..runtime.clock import monotonic
from ..runtime.service import pause
from ..runtime.service_records import ServiceStatus
from .server import STOP_S, Listen

log = logging.getLogger("rota.http")

ROOT = str(Path(__file__).resolve().parents[2])  # so that the child imports the same rota
EVERY_S = 1.0
START_S = 120.0  # to import the app and open its store
END_S = STOP_S + 5.0
FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
SETTLED_S = 60.0  # a process that ran this long restarts with the first delay again
FULL = 64 * 1024  # bytes that it has not read: it gets no more


class ApiProgram(msgspec.Struct, frozen=True, kw_only=True):
    """What the other process needs to load the same app, with the same logs."""

    module: str  # run with ``python -m``
    app: str
    imports: tuple[str, ...] = ()
    url: str | None = None
    log_level: str = "info"
    log_format: str | None = None


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The first message to the other process. By the socket: the store URL may contain a password."""

    program: ApiProgram
    listen: Listen
    listening: int  # the file descriptor
    is_first: bool  # not a restart: then there may be a token to create, and a link
    wants_link: bool
    wants_token: bool  # the first one, if there is none: only for a terminal


class ApiReady(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: where it listens and how to sign in, or why it cannot start."""

    url: str = ""
    link: str | None = None
    token: str | None = None
    lacks_credentials: bool = False
    error: str | None = None


class WorkerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What follows, every second: how the services of the worker do."""

    services: Sequence[ServiceStatus] = ()
    force: bool = False


def is_possible(app: Rota) -> bool:
    """Whether another process can serve this store, and inherit a socket."""
    return app.stores.root().capabilities.shared and os.name == "posix" and not getattr(sys, "frozen", False)


class ApiProcess:
    """Keeps the process running until ``stop``."""

    def __init__(self, app: Rota, program: ApiProgram, listen: Listen, listening: socket.socket) -> None:
        self._app, self._program, self._listen, self._listening = app, program, listen, listening
        self._stopping = asyncio.Event()
        self._ready: asyncio.Future[ApiReady] = asyncio.get_running_loop().create_future()
        self._wants_link = self._wants_token = False
        self._writer: asyncio.StreamWriter | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._pid: int | None = None

    async def start(self, *, link: bool, token: bool) -> ApiReady:
        """Start the process, and wait until it serves. ConfigError if it cannot."""
        self._wants_link, self._wants_token = link, token
        self._keeping = asyncio.create_task(self._keep(), name="rota-api-process")
        try:
            async with asyncio.timeout(START_S):
                ready = await asyncio.shield(self._ready)
        except TimeoutError:
            ready = ApiReady(error=f"the API's process did not start within {START_S:g} s: see the log")
        if ready.error is not None:
            await self.stop()
            raise ConfigError(ready.error)
        return ready

    async def stop(self) -> None:
        """Let it finish the requests under way, and end it."""
        self._stopping.set()
        if self._writer is not None:
            self._writer.close()
        if self._keeping is not None:
            await self._keeping
        self._listening.close()

    def force(self) -> None:
        self._send(WorkerMessage(force=True))

    # --- keeping it ------------------------------------------------------------------------------

    async def _keep(self) -> None:
        delay = FIRST_DELAY
        while not self._stopping.is_set():
            since = monotonic()
            code = await self._run()
            if self._stopping.is_set():
                return
            if not self._ready.done():
                self._ready.set_result(ApiReady(error=f"the API's process ended ({_how(code)}): see the log"))
                return
            delay = FIRST_DELAY if monotonic() - since > SETTLED_S else delay
            log.error("the API's process died (%s); restarting in %.1f s", _how(code), delay)
            await pause(delay, self._stopping)
            delay = min(delay * 2, LONGEST_DELAY)

    async def _run(self) -> int:
        """Run it once; its exit code."""
        ours, theirs = socket.socketpair()
        with theirs:
            path = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                self._program.module,
                stdin=theirs.fileno(),
                env={**systemd.without(os.environ), "PYTHONPATH": path},
                pass_fds=(self._listening.fileno(),),
                start_new_session=True,  # Ctrl-C goes to the worker, which decides
            )
        self._pid = process.pid
        reader, self._writer = await asyncio.open_connection(sock=ours)
        reading = asyncio.create_task(self._read(reader), name="rota-api-answers")
        reporting = asyncio.create_task(self._report(), name="rota-api-reports")
        try:
            return await self._wait(process)
        finally:
            reporting.cancel()
            self._writer.close()
            self._writer = None
            await asyncio.gather(reading, reporting, return_exceptions=True)

    async def _wait(self, process: asyncio.subprocess.Process) -> int:
        ended = asyncio.create_task(process.wait())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((ended, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await asyncio.wait((ended,), timeout=END_S)
        if not ended.done():
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        return await ended

    # --- messages --------------------------------------------------------------------------------

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while line := await reader.readline():
                if not self._ready.done():
                    self._ready.set_result(msgspec.json.decode(line, type=ApiReady))

    async def _report(self) -> None:
        self._write(
            ApiRequest(
                program=self._program,
                listen=self._listen,
                listening=self._listening.fileno(),
                is_first=not self._ready.done(),
                wants_link=self._wants_link,
                wants_token=self._wants_token,
            )
        )
        while not await pause(EVERY_S, self._stopping):
            self._send(WorkerMessage(services=self._app.runtime.records.statuses(self._app.clock.now())))

    def _send(self, message: WorkerMessage) -> None:
        if self._writer is not None and self._writer.transport.get_write_buffer_size() < FULL:
            self._write(message)

    def _write(self, message: ApiRequest | WorkerMessage) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(msgspec.json.encode(message) + b"\n")


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


@asynccontextmanager
async def api_beside(
    app: Rota, program: ApiProgram, listen: Listen, listening: socket.socket, *, link: bool, token: bool
) -> AsyncIterator[tuple[ApiProcess, ApiReady]]:
    """Serve the API in another process while the block runs."""
    process = ApiProcess(app, program, listen, listening)
    ready = await process.start(link=link, token=token)
    try:
        yield process, ready
    finally:
        await process.stop()
