"""Hints that a job became ready or has finished.

Commits of this process are published at once. Commits of others show in ``data_version``, which the
writer's thread reads every few milliseconds while someone waits; it changes with any write, so the hub
reads whether there is anything for those who wait before it wakes them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Collection, Set

from ...model import FINAL, JobId
from ..hints import ANY_QUEUE, HintHub, HubWaker, Wait
from .machine_clock import machine_micros
from .rows import as_json
from .statements import statement


class SqliteHintHub(HintHub):
    """A hub that also finds out what other processes have committed."""

    def __init__(self) -> None:
        super().__init__()
        self._version: int | None = None  # data_version when last read
        self._next_due: int | None = None
        self._next_check: int | None = None  # of a schedule

    def check_for_commits(self, connection: sqlite3.Connection) -> bool:
        """Whether another connection has committed since the last check; publish what that means."""
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        if version == self._version:
            return False
        self._version = version
        self.publish(
            self._ready(connection),
            self._finished(connection),
            announced=1,
            schedules=self._is_rescheduled(connection),
        )
        return True

    def _is_rescheduled(self, connection: sqlite3.Connection) -> bool:
        """Whether a schedule is to be checked now, or the next one at another time than when last read."""
        before = self._next_check
        self._next_check = connection.execute(statement("next_check"), (-1,)).fetchone()[0]
        if self._next_check is None:
            return False
        return self._next_check != before or self._next_check <= machine_micros()

    def _ready(self, connection: sqlite3.Connection) -> Set[str | None]:
        ready: set[str | None] = {row[0] for row in connection.execute(statement("lanes"))}
        due = connection.execute(statement("next_due")).fetchone()[0]
        if due is not None and (self._next_due is None or due < self._next_due):
            ready.add(ANY_QUEUE)  # sleepers that wait for the job that was next must wake earlier
        self._next_due = due
        if connection.execute(statement("any_held")).fetchone()[0]:
            ready.add(ANY_QUEUE)  # the end of any job may have made room for one
        return ready

    def _finished(self, connection: sqlite3.Connection) -> Collection[JobId]:
        awaited = self.awaited_jobs()
        if not awaited:
            return ()
        live = {
            id for id, state in connection.execute(statement("states"), (as_json(sorted(awaited)),))
            if state not in FINAL
        }  # fmt: skip
        return awaited - live


class SqliteWaker(HubWaker):
    def __init__(
        self, hub: HintHub, nudge: Callable[[], None], is_finished: Callable[[JobId], Awaitable[bool]]
    ) -> None:
        super().__init__(hub)
        self._nudge = nudge
        self._is_finished = is_finished

    def _attend(self) -> None:
        self._nudge()

    async def _until_finished(self, job: JobId, wait: Wait, timeout: float) -> None:
        if await self._is_finished(job):  # it finished before the wait began
            return
        self._nudge()
        await wait.until_woken(timeout)
