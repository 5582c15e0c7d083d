"""Group commit: inserts of callers that wait at the same time share a write.

Owns which calls go together, and that each caller gets the results of its own jobs, in its own order.
Must never know how jobs are stored. A store gives it a function that writes several calls at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from ..errors import SchemaMismatch, StoreUnavailable
from ..model import InsertResult, NewJob

MOST_JOBS = 1000  # of the calls that share a write

Results = Sequence[InsertResult]


class InsertCall:
    """The jobs of one caller. It has no ``answer`` while it is written alone."""

    __slots__ = ("answer", "jobs", "now")

    def __init__(
        self, jobs: Sequence[NewJob], now: datetime, answer: asyncio.Future[Results] | None = None
    ) -> None:
        self.jobs = jobs
        self.now = now
        self.answer = answer

    def succeed(self, results: Results) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(results)

    def fail(self, error: BaseException) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)


Write = Callable[[Sequence[InsertCall]], Awaitable[Sequence[Results]]]


class GroupCommit:
    """One caller is written at once; those who come while writes are under way share the next.

    Callers who were just answered often come again. So that neither they nor the store wait for each
    other, ``most_writes`` may be under way at a time, and each takes its share of the callers: some
    prepare while others are stored. Belongs to one event loop.
    """

    def __init__(self, write: Write, most_writes: int) -> None:
        self._write = write
        self._most_writes = most_writes
        self._restart(None)

    def _restart(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop
        self._writes = 0  # under way
        self._in_flight = 0  # callers in them
        self._answered = 0  # callers in the last one that ended
        self._waiting: deque[InsertCall] = deque()
        self._flushing: set[asyncio.Task[None]] = set()

    async def insert(self, jobs: Sequence[NewJob], now: datetime) -> Results:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the former one has ended, perhaps in the middle of a write
            self._restart(loop)
        if self._writes:
            answer: asyncio.Future[Results] = loop.create_future()
            self._waiting.append(InsertCall(jobs, now, answer))
            self._send_if_worthwhile()
            return await answer
        self._begin(1)
        try:
            (results,) = await self._write((InsertCall(jobs, now),))
            return results
        finally:
            self._end(1)

    def _begin(self, callers: int) -> None:
        self._writes += 1
        self._in_flight += callers

    def _end(self, callers: int) -> None:
        self._writes -= 1
        self._in_flight -= callers
        self._answered = callers
        if self._waiting:
            self._send_if_worthwhile()

    def _send_if_worthwhile(self) -> None:
        share = max((self._in_flight + self._answered + len(self._waiting)) // self._most_writes, 1)
        if self._writes == 0:
            self._send(len(self._waiting))
        elif self._writes < self._most_writes and len(self._waiting) >= share:
            self._send(share)

    def _send(self, most: int) -> None:
        group: list[InsertCall] = []
        size = 0
        while self._waiting and len(group) < most and size < MOST_JOBS:
            call = self._waiting.popleft()
            if call.answer is not None and not call.answer.done():  # else its caller gave up
                group.append(call)
                size += len(call.jobs)
        if group:
            self._begin(len(group))
            task = asyncio.ensure_future(self._flush(group))
            self._flushing.add(task)
            task.add_done_callback(self._flushing.discard)

    async def _flush(self, group: Sequence[InsertCall]) -> None:
        try:
            await self._store(group)
        except BaseException as error:
            for call in group:
                call.fail(error)
            raise
        finally:
            self._end(len(group))

    async def _store(self, group: Sequence[InsertCall]) -> None:
        try:
            results = await self._write(group)
        except Exception as error:
            if len(group) == 1 or isinstance(error, StoreUnavailable | SchemaMismatch):
                for call in group:
                    call.fail(error)
                return
            half = len(group) // 2  # one of them cannot be stored; the others can
            await self._store(group[:half])
            await self._store(group[half:])
            return
        for call, own in zip(group, results, strict=True):
            call.succeed(own)
