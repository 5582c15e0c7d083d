"""The one connection that listens.

Owns LISTEN, its self-test and its reconnection. A connection can be dead without saying so, and a
pooler may swallow notifications: so a private probe makes the round trip every few seconds. Must
never raise: without it wake-ups are merely later.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from contextvars import Context
from time import monotonic

from psycopg import Notify

from ..hints import ANY_QUEUE, HintHub
from .connections import Connection, Connections, connect

log = logging.getLogger("rota.store")

PROBE_EVERY_S = 20.0
PROBE_WITHIN_S = 5.0
FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0
DEAF_DELAY_S = 60.0
DEAF = (
    "receives no notifications, as behind a pooler in transaction mode, so workers poll instead; "
    "add ?listen=URL with a direct address to the store's URL, or ?listen=off to be silent"
)
DEAF_AFTER = 2  # connections on which no probe ever came back


class _ListenerTimeout(Exception):
    """The probe did not come back. ``ever``: an earlier one had."""

    def __init__(self, ever: bool) -> None:
        super().__init__("no notification came back")
        self.ever = ever


class Listener:
    def __init__(self, conninfo: str, shown: str, connections: Connections, hub: HintHub) -> None:
        self._conninfo = conninfo
        self._shown = shown
        self._connections = connections
        self._hub = hub
        self.is_connected = False
        self._probe = f"rota_probe_{secrets.token_hex(8)}"
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._delay = FIRST_DELAY_S
        self._deaf = 0
        self._complained = False
        self._heard_at: float | None = None

    @property
    def silent_s(self) -> float | None:
        """Seconds since a notification last came back, or since the start; None: not started."""
        return None if self._heard_at is None else monotonic() - self._heard_at

    def start(self) -> None:
        if self._task is None:
            self._heard_at = monotonic()
            # In a context of its own: the job that happens to start it is not what it works for.
            self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    async def close(self) -> None:
        task, self._task, self._heard_at = self._task, None, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def abandon(self) -> None:
        self._task = self._heard_at = None
        if self._connection is not None:
            self._connection.end()

    async def _run(self) -> None:
        while True:
            try:
                await self._listen()
            except _ListenerTimeout as error:
                self._deaf = 0 if error.ever else self._deaf + 1
                if self._deaf >= DEAF_AFTER:
                    self._complain(DEAF)
                    self._delay = DEAF_DELAY_S
            except Exception as error:
                self._complain(f"lost its listening connection and will try again: {error}")
            await asyncio.sleep(self._delay * (0.5 + secrets.randbelow(1000) / 1000))
            self._delay = max(min(self._delay * 2, LONGEST_DELAY_S), FIRST_DELAY_S)

    def _complain(self, what: str) -> None:
        """Once per trouble: the log of a long outage holds one line, not thousands."""
        log.log(logging.DEBUG if self._complained else logging.WARNING, "%s %s", self._shown, what)
        self._complained = True

    async def _listen(self) -> None:
        self._connection = connection = await connect(self._conninfo, self._shown)
        self.is_connected = True
        try:
            for channel in ("rota_wake", "rota_many", "rota_done", "rota_schedules", self._probe):
                await connection.execute(f"LISTEN {channel}".encode())
            self._hub.publish((ANY_QUEUE,), schedules=True)  # for what came before we listened
            await self._receive(connection)
        finally:
            self.is_connected, self._connection = False, None
            await connection.close()

    async def _receive(self, connection: Connection) -> None:
        ever = False
        while True:
            await self._connections.rows("SELECT pg_notify(%s, '')", (self._probe,))
            if not await self._receive_probe(connection):
                raise _ListenerTimeout(ever)
            ever = True
            self._recovered()
            async for notice in connection.notifies(timeout=PROBE_EVERY_S):
                self._pass_on(notice)

    async def _receive_probe(self, connection: Connection) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PROBE_WITHIN_S
        found = False
        while not found and (left := deadline - loop.time()) > 0:
            # Never left halfway: several may come at once, and those not looked at would be lost.
            async for notice in connection.notifies(timeout=left, stop_after=1):
                found = self._pass_on(notice) or found
        return found

    def _recovered(self) -> None:
        if self._complained:
            log.info("%s receives notifications again", self._shown)
        self._delay, self._deaf, self._complained = FIRST_DELAY_S, 0, False
        self._heard_at = monotonic()

    def _pass_on(self, notice: Notify) -> bool:
        """Whether it was our own probe."""
        if notice.channel == "rota_wake":
            self._hub.publish((notice.payload,), announced=1)
        elif notice.channel == "rota_many":
            jobs, _, queue = notice.payload.partition(" ")
            self._hub.publish((queue,), announced=int(jobs) if jobs.isdecimal() else None)
        elif notice.channel == "rota_done":
            self._hub.publish((), (notice.payload,))
        elif notice.channel == "rota_schedules":
            self._hub.publish((), schedules=True)
        return notice.channel == self._probe
