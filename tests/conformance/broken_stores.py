"""Stores that are broken on purpose: the suite must tell each of them from a good one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from rota.model import ClaimRequest, InsertResult, NewJob, Settlement, TurnResult
from rota.store.sqlite.store import SqliteStore

PAUSE_S = 0.3  # between an answer and the write that it promised


class AcknowledgesFromMemory(SqliteStore):
    """Answers at once and writes a little later, as a server does that syncs in the background."""

    async def insert(self, jobs: Sequence[NewJob], now: datetime, **given: Any) -> Sequence[InsertResult]:
        self._later(super().insert(jobs, now, **given))
        return [InsertResult(id=job.id, outcome="created") for job in jobs]

    def _later(self, write: Any) -> None:
        async def wait() -> None:
            await asyncio.sleep(PAUSE_S)
            await write

        self._writes = [*getattr(self, "_writes", []), asyncio.ensure_future(wait())]


class WritesInParts(SqliteStore):
    """Commits the states first, then follow-up jobs, then audit entries, one after the other."""

    async def turn(
        self, settlements: Sequence[Settlement], request: ClaimRequest | None, now: datetime
    ) -> TurnResult:
        bare = [msgspec.structs.replace(one, then=(), audit=()) for one in settlements]
        result = await super().turn(bare, request, now)
        for one in settlements:
            if one.id not in result.refused:
                await self.insert(one.then, now)
                await self.append_audit(one.audit)
        return result


class ReadsTheTimeOnce(SqliteStore):
    """Decides by the time at which it was made, and takes claims however late they come."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._made_at = datetime.now(UTC)

    async def turn(
        self, settlements: Sequence[Settlement], request: ClaimRequest | None, now: datetime | None
    ) -> TurnResult:
        if request is not None:
            request = msgspec.structs.replace(request, until=None)
        return await super().turn(settlements, request, now or self._made_at)


class NeverWakes(SqliteStore):
    """Promises wake-ups and sends none: its waiters sleep until their time is over."""

    def waker(self) -> Any:
        return _Sleeper()


class _Sleeper:
    async def wait(self, queues: Sequence[str] | None, timeout: float) -> None:
        await asyncio.sleep(timeout)

    async def wait_finished(self, job: str, timeout: float) -> None:
        await asyncio.sleep(timeout)

    async def wait_schedules(self, timeout: float) -> None:
        await asyncio.sleep(timeout)

    async def close(self) -> None:
        return None
