"""What every admin action shares: the actor, access checks, the audit log, and the base of action groups.

An action names the permission it requires; a denied call is audited like a completed one. Holds no action
itself and must not import a module that does, so that every group can build on it.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Concatenate, ParamSpec, TypeVar

from ..core.access import require
from ..core.jobs.gates import active
from ..errors import Forbidden, NotFound
from ..model import Actor, Gate
from ..runtime.audit import AuditDraft, acting_as, audited, record
from ..runtime.gate_watch import load
from ..store.protocol import Store
from .services import Services
from .views import Visibility, visible_gate

P = ParamSpec("P")
R = TypeVar("R")
G = TypeVar("G", bound="ActionGroup")
LONGEST_NAME = 400


class ActionContext:
    """One actor on one app's store: what it may see, and under which name its actions are audited."""

    def __init__(self, services: Services, actor: Actor) -> None:
        self.services = services
        self.actor = actor

    async def store(self) -> Store:
        return await self.services.stores.get()

    @property
    def visibility(self) -> Visibility:
        return Visibility(
            payloads=self.actor.payloads,
            secrets=self.services.settings.secret_fields,
            tenant=self.actor.tenant,
        )

    def tenant(self, requested: str | None) -> str | None:
        """The tenant to read, limited to the actor's own; None: all tenants."""
        own = self.actor.tenant
        if own is not None and requested not in (None, own):
            raise NotFound(f"there is no tenant {requested!r}")
        return own or requested

    def sees(self, tenant: str | None) -> bool:
        return self.actor.tenant is None or self.actor.tenant == tenant

    async def active_gates(self) -> Sequence[Gate]:
        """Every pause in force now, whether or not the actor may see it; its author and reason if it may."""
        found = active(await load(await self.store()), self.services.clock.now())
        return [visible_gate(gate, self.visibility) for gate in found]

    def audited(
        self, action: str, object: str | None = None, tenant: str | None = None
    ) -> AbstractAsyncContextManager[AuditDraft]:
        return audited(self.services.runtime, action, object, tenant)


class ActionGroup:
    """The actions on one subject, for one actor."""

    subject = "system"  # first part of the audit names of its actions

    def __init__(self, operations: ActionContext) -> None:
        self.operations = operations
        self.services = operations.services


def requires(
    permission: str, audit_name: str | None = None
) -> Callable[[Callable[Concatenate[G, P], Awaitable[R]]], Callable[Concatenate[G, P], Awaitable[R]]]:
    """Mark an action with the permission it requires; a call without it is denied and audited."""

    def mark(
        action: Callable[Concatenate[G, P], Awaitable[R]],
    ) -> Callable[Concatenate[G, P], Awaitable[R]]:
        @functools.wraps(action)
        async def guarded(group: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
            with acting_as(group.operations.actor):
                try:
                    require(group.operations.actor, permission)
                except Forbidden as error:
                    name = audit_name or f"{group.subject}.{action.__name__}"
                    await record(group.services.runtime, _denied(group, name, args), "denied", error)
                    raise
                return await action(group, *args, **kwargs)

        guarded.permission = permission  # type: ignore[attr-defined]
        return guarded

    return mark


def _denied(group: ActionGroup, name: str, args: Sequence[object]) -> AuditDraft:
    """The audit entry of a denied call; its object is the first name in the path, if there is one."""
    draft = AuditDraft(name, None, group.operations.actor.tenant)
    if args and isinstance(args[0], str):
        draft.object = f"{name.partition('.')[0]}:{args[0][:LONGEST_NAME]}"
    return draft
