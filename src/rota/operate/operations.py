"""The desk: what one actor may see and do. Its rooms hold the actions.

An action is marked with the permission it needs; what it writes is told to the audit log, whether it
worked or not.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Concatenate, ParamSpec, TypeVar

from ..core.access import require
from ..errors import Forbidden, NotFound
from ..model import Actor
from ..runtime.audit import AuditDraft, acting_as, audited, record
from ..store.protocol import Store
from .services import Services
from .views import Visibility

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound="ActionGroup")
LONGEST_NAME = 400


class Operations:
    """Everything one actor may do on one app's store."""

    def __init__(self, app: Services, actor: Actor) -> None:
        from .access import AccessActions
        from .gates import GateActions
        from .jobs import JobActions
        from .schedules import ScheduleActions
        from .system import SystemActions

        self.app = app
        self.actor = actor
        self.jobs = JobActions(self)
        self.schedules = ScheduleActions(self)
        self.gates = GateActions(self)
        self.system = SystemActions(self)
        self.access = AccessActions(self)

    async def store(self) -> Store:
        return await self.app.stores.get()

    @property
    def visibility(self) -> Visibility:
        return Visibility(payloads=self.actor.payloads, secrets=self.app.settings.secret_fields)

    def tenant(self, asked: str | None) -> str | None:
        """The tenant to look at: the one asked for, bounded by the actor's own; None: all."""
        own = self.actor.tenant
        if own is not None and asked not in (None, own):
            raise NotFound(f"there is no tenant {asked!r}")
        return own or asked

    def sees(self, tenant: str | None) -> bool:
        return self.actor.tenant is None or self.actor.tenant == tenant

    def audited(
        self, action: str, object: str | None = None, tenant: str | None = None
    ) -> AbstractAsyncContextManager[AuditDraft]:
        return audited(self.app.runtime, action, object, tenant)


class ActionGroup:
    """A part of the desk."""

    thing = "system"  # what its actions are about, in the audit log

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.app = operations.app


def requires(
    permission: str, deed: str | None = None
) -> Callable[[Callable[Concatenate[M, P], Awaitable[R]]], Callable[Concatenate[M, P], Awaitable[R]]]:
    """Mark an action with the permission it needs; without it, it is refused and the attempt is told."""

    def mark(
        act: Callable[Concatenate[M, P], Awaitable[R]],
    ) -> Callable[Concatenate[M, P], Awaitable[R]]:
        @functools.wraps(act)
        async def guarded(room: M, /, *args: P.args, **given: P.kwargs) -> R:
            with acting_as(room.operations.actor):
                try:
                    require(room.operations.actor, permission)
                except Forbidden as error:
                    note = AuditDraft(
                        deed or f"{room.thing}.{act.__name__}", None, room.operations.actor.tenant
                    )
                    if args and isinstance(args[0], str):
                        note.object = f"{note.action.partition('.')[0]}:{args[0][:LONGEST_NAME]}"
                    await record(room.app.runtime, note, "refused", error)
                    raise
                return await act(room, *args, **given)

        guarded.permission = permission  # type: ignore[attr-defined]
        return guarded

    return mark
