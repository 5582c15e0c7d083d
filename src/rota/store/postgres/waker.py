"""Hints between processes: sending them, hearing them, waiting for them.

Owns the channels ``rota_wake`` (payload: a queue), ``rota_many`` (payload: how many jobs it got and a queue)
and ``rota_done`` (payload: a job); the server itself sends ``rota_schedules`` (no payload). A hint may be
missing: those who wait also look for themselves now and then. Must never hold up a call. Every role of
the database may listen, so a queue is named by its hash, as ``rota.hint_of`` makes it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from contextvars import Context
from hashlib import sha256

from ...errors import RotaError
from ...model import JobId
from ..hints import HintHub, HubWaker, Wait
from .connections import Connections
from .rows import ids

PAUSE_S = 0.005  # between two notifications
GRACE_S = 0.002  # by which an insert may come to take a pending one along
MANY = 8  # jobs; fewer need no more workers than a single one wakes
MANY_PAUSE_S = 0.1
LAST_WORD_S = 0.5
FIRST_LOOK_S = 0.05
LONGEST_LOOK_S = 5.0

# A hint need not be on disk before it is heard.
_NOTIFY = """
SELECT pg_notify(channel, payload), set_config('synchronous_commit', 'off', true)
  FROM unnest(CAST(%s AS text[]), CAST(%s AS text[])) AS hint(channel, payload)
"""
_AWAIT = """
INSERT INTO rota.waiters AS w (id, until)
VALUES (%s, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (id) DO UPDATE SET until = greatest(w.until, excluded.until)
"""
_IS_LIVE = "SELECT 1 FROM rota.states(CAST(%s AS uuid[]), false)"


def hint_of(queue: str) -> str:
    """As ``rota.hint_of`` in the database."""
    return sha256(queue.encode()).hexdigest()[:16]


class HintPublisher:
    """Announces ready queues: to its own process at once, to others at most once per few milliseconds.

    The first insert after a silence sends the notification in its own transaction. What is stored soon
    after is announced by a later insert, or else in a transaction of its own.
    """

    def __init__(self, connections: Connections, hub: HintHub) -> None:
        self._connections = connections
        self._hub = hub
        self._pending: set[str] = set()
        self._many: Counter[str] = Counter()
        self._quiet_until = self._many_quiet_until = 0.0
        self._task: asyncio.Task[None] | None = None

    def may_ride_along(self) -> bool:
        """Whether the insert about to be sent should notify by itself, and then ``publish`` as ``sent``."""
        now = asyncio.get_running_loop().time()
        if now < self._quiet_until:
            return False
        self._quiet_until = now + PAUSE_S
        return True

    def publish(self, queues: Collection[str], *, jobs: int = 1, sent: bool = False) -> None:
        """Announce ``jobs``, in all of these. ``sent``: the other processes know, but not how many."""
        self._hub.publish(queues)
        if sent:
            self._pending.difference_update(queues)
        else:
            self._pending.update(queues)
        if jobs > MANY:
            self._many.update(dict.fromkeys(queues, jobs))
        if (self._pending or self._many) and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._send(), context=Context())

    async def close(self) -> None:
        """Send what is pending, unless the server does not answer."""
        if self._task is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._task, LAST_WORD_S)

    def abandon(self) -> None:
        self._task = None
        self._pending.clear()
        self._many.clear()

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._pending or self._many:
                until = self._quiet_until
                if not self._pending:
                    until = max(until, self._many_quiet_until)
                if (silence := until - loop.time()) > 0:
                    await asyncio.sleep(silence + GRACE_S)
                    continue
                hints = self._take_hints(loop.time())
                channels, payloads = zip(*hints, strict=True)
                with suppress(RotaError):  # it was only a hint
                    await self._connections.rows(_NOTIFY, (list(channels), list(payloads)))
        finally:
            self._task = None

    def _take_hints(self, now: float) -> list[tuple[str, str]]:
        self._quiet_until = now + PAUSE_S
        hints = [("rota_wake", hint_of(queue)) for queue in sorted(self._pending)]
        self._pending.clear()
        if self._many and now >= self._many_quiet_until:
            self._many_quiet_until = now + MANY_PAUSE_S
            hints += [("rota_many", f"{jobs} {hint_of(queue)}") for queue, jobs in self._many.items()]
            self._many.clear()
        return hints


class PostgresWaker(HubWaker):
    def __init__(self, connections: Connections, hub: HintHub) -> None:
        super().__init__(hub)
        self._connections = connections

    async def wait(self, queues: Sequence[str] | None, timeout: float) -> int | None:
        """Its own process names a queue, the others name it by its hash."""
        named = None if queues is None else [*queues, *map(hint_of, queues)]
        return await super().wait(named, timeout)

    async def _until_finished(self, job: JobId, wait: Wait, timeout: float) -> None:
        """A job that finishes while we register may not be announced: so look, less and less often."""
        if not ids((job,)):
            return
        await self._connections.rows(_AWAIT, (job, timeout))
        pause = FIRST_LOOK_S
        while await self._connections.rows(_IS_LIVE, ([job],)):
            if await wait.until_woken(pause):
                return
            pause = min(pause * 2, LONGEST_LOOK_S)
