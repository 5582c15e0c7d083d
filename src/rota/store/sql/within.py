"""Schedules in the caller's own transaction: what every SQL store shares.

A store writes each method as a script (see ``external.py``). Must never open a connection of its own: it
could wait for the caller's transaction, which waits for it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from ...errors import ConfigError
from ...model import AuditEntry, Document, Page, PageRequest, Schedule, ScheduleFilter
from .external import Script

R = TypeVar("R")
Run = Callable[[Script[Any]], Any | Awaitable[Any]]


class Scripts(Protocol):
    """The scripts of one kind of store."""

    def schedules(self, where: ScheduleFilter, page: PageRequest) -> Script[Page[Schedule]]: ...
    def put(self, schedules: Sequence[Schedule], now: datetime) -> Script[Sequence[int | None]]: ...
    def delete(self, ids: Sequence[str]) -> Script[Sequence[str]]: ...
    def document(self, kind: str, key: str) -> Script[Sequence[Document]]: ...
    def audit(self, entries: Sequence[AuditEntry]) -> Script[None]: ...


class ScriptedStore:
    """A ``StoreWithin``. With a connection that is not async, nothing here ever waits."""

    def __init__(self, scripts: Scripts, run: Run) -> None:
        self._scripts = scripts
        self._run = run

    async def schedules(self, where: ScheduleFilter, page: PageRequest) -> Page[Schedule]:
        return await self._ask(self._scripts.schedules(where, page))

    async def put_schedules(self, schedules: Sequence[Schedule], now: datetime) -> Sequence[int | None]:
        return await self._ask(self._scripts.put(schedules, now))

    async def delete_schedules(self, ids: Sequence[str]) -> Sequence[str]:
        return await self._ask(self._scripts.delete(ids))

    async def documents(self, kind: str, key: str) -> Sequence[Document]:
        return await self._ask(self._scripts.document(kind, key))

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        await self._ask(self._scripts.audit(entries))

    async def _ask(self, script: Script[R]) -> R:
        answer = self._run(script)
        if inspect.iscoroutine(answer) and not _has_loop():
            answer.close()  # before it has sent anything
            raise ConfigError("a sync call was given an async connection: await the async method instead")
        found: R = await answer if inspect.isawaitable(answer) else answer
        return found


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
