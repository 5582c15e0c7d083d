"""Schedules and rules in the caller's own transaction: what every SQL store shares.

A store writes each method as a script (see ``external.py``). Must never open a connection of its own: it
could wait for the caller's transaction, which waits for it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar, cast

from ...errors import ConfigError, StoreError
from ...model import (
    Answer,
    AuditEntry,
    Document,
    LimitRule,
    LimitRules,
    Page,
    PageRequest,
    Question,
    Schedule,
    ScheduleFilter,
    TenantRule,
    TenantRules,
    TenantsInUse,
    TenantUse,
)
from .external import Script

R = TypeVar("R")
Run = Callable[[Script[Any]], Any | Awaitable[Any]]


class Scripts(Protocol):
    """The scripts of one kind of store."""

    def schedules(self, where: ScheduleFilter, page: PageRequest) -> Script[Page[Schedule]]: ...
    def put(self, schedules: Sequence[Schedule], now: datetime) -> Script[Sequence[int | None]]: ...
    def delete(self, ids: Sequence[str]) -> Script[Sequence[str]]: ...
    def document(self, kind: str, key: str) -> Script[Sequence[Document]]: ...
    def limit_rules(self, names: Sequence[str]) -> Script[Sequence[LimitRule]]: ...
    def tenant_rules(self, names: Sequence[str] | None) -> Script[Sequence[TenantRule]]: ...
    def tenant_in_use(self, name: str, most: int) -> Script[TenantUse]: ...
    def audit(self, entries: Sequence[AuditEntry]) -> Script[None]: ...


class ScriptedStore:
    """A ``StoreWithin``. With a connection that is not async, nothing here ever waits."""

    def __init__(self, scripts: Scripts, run: Run, is_async: bool) -> None:
        self._scripts = scripts
        self._run = run
        self._is_async = is_async

    @property
    def is_async(self) -> bool:
        return self._is_async

    async def schedules(self, where: ScheduleFilter, page: PageRequest) -> Page[Schedule]:
        return await self._ask(self._scripts.schedules(where, page))

    async def put_schedules(self, schedules: Sequence[Schedule], now: datetime) -> Sequence[int | None]:
        return await self._ask(self._scripts.put(schedules, now))

    async def delete_schedules(self, ids: Sequence[str]) -> Sequence[str]:
        return await self._ask(self._scripts.delete(ids))

    async def documents(self, kind: str, key: str) -> Sequence[Document]:
        return await self._ask(self._scripts.document(kind, key))

    async def survey(self, question: Question[Answer]) -> Answer:
        answer: Any
        match question:
            case LimitRules(names=tuple(limits)):
                answer = await self._ask(self._scripts.limit_rules(limits))
            case TenantRules(names=names):
                answer = await self._ask(self._scripts.tenant_rules(names))
            case TenantsInUse(names=names, most=most):
                answer = [await self._ask(self._scripts.tenant_in_use(name, most)) for name in names]
            case _:
                raise StoreError(f"{type(question).__name__} cannot be asked in a caller's transaction")
        return cast(Answer, answer)

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
