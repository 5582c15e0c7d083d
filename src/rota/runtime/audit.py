"""The audit log of what is done through this program: one entry around each change.

The actor is known by context: operations set it for the time of an action; otherwise it is the program
itself. What a worker decides about jobs is recorded with the job's settlement, not here.
"""

from __future__ import annotations

import getpass
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import msgspec

from ..core.payload.masking import masked
from ..errors import RotaError, StoreError
from ..model import Actor, AuditEntry, AuditResult, Via
from ..store.protocol import StoreWithin
from .runtime import Runtime

log = logging.getLogger("rota.audit")

ACTOR: ContextVar[Actor | None] = ContextVar("rota_actor", default=None)
LONGEST_MESSAGE = 500
DENIED_A_MINUTE = 20  # of one actor; more would fill the log, and say nothing new


@cache
def program(via: Via = "python") -> Actor:
    """The user who runs this program."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        user = "unknown"
    name = f"{user}@{socket.gethostname()}"
    return Actor(name=name, role="admin", payloads=True, via=via)


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    token = ACTOR.set(actor)
    try:
        yield
    finally:
        ACTOR.reset(token)


class AuditDraft:
    """An audit entry under construction."""

    def __init__(self, action: str, object: str | None, tenant: str | None) -> None:
        self.action, self.object, self.tenant = action, object, tenant
        self.before: Any = None
        self.after: Any = None
        self.message: str | None = None
        self.is_needed = True  # False: nothing was changed after all


@asynccontextmanager
async def audited(
    runtime: Runtime,
    action: str,
    object: str | None = None,
    tenant: str | None = None,
    within: StoreWithin | None = None,
) -> AsyncIterator[AuditDraft]:
    """Around a change: one entry in the audit log, whatever its result.

    ``within``: the caller's own transaction. Then the entry is part of it, and a failure leaves none.
    """
    draft = AuditDraft(action, object, tenant)
    if within is not None:
        yield draft
        if draft.is_needed:
            await within.append_audit([_entry(runtime, draft, "done", None)])
        return
    try:
        yield draft
    except Exception as error:
        is_refusal = isinstance(error, RotaError) and not isinstance(error, StoreError)
        await record(runtime, draft, "denied" if is_refusal else "failed", error)
        raise
    if draft.is_needed:
        await record(runtime, draft, "done")


async def record(
    runtime: Runtime, draft: AuditDraft, result: AuditResult, error: Exception | None = None
) -> None:
    """Add the entry. The change itself is done already, so an unavailable store is only logged.

    Denied requests change nothing: those beyond ``DENIED_A_MINUTE`` are only logged, and the last entry
    says so.
    """
    if result == "denied":
        actor = ACTOR.get() or program()
        number = runtime.denied.add(actor.name, runtime.clock.now())
        if number > DENIED_A_MINUTE:
            log.debug("denied, and not in the audit log: %s by %s: %s", draft.action, actor.name, error)
            return
        if number == DENIED_A_MINUTE:
            error = RotaError(
                f"{error}; more denied requests of this actor within the minute are not recorded"
            )
    await _append(runtime, draft, result, error)


async def _append(runtime: Runtime, draft: AuditDraft, result: AuditResult, error: Exception | None) -> None:
    entry = _entry(runtime, draft, result, error)
    try:
        await (await runtime.stores.get()).append_audit([entry])
    except StoreError as failure:
        log.error("not in the audit log: %s by %s: %s (%s)", entry.action, entry.actor, result, failure)


def _entry(runtime: Runtime, draft: AuditDraft, result: AuditResult, error: Exception | None) -> AuditEntry:
    actor, secrets = ACTOR.get() or program(), runtime.settings.secret_fields
    return AuditEntry(
        action=draft.action,
        at=runtime.clock.now(),
        actor=actor.name,
        role=actor.role,
        via=actor.via,
        tenant=draft.tenant,
        object=draft.object,
        before_json=_json(draft.before, secrets),
        after_json=_json(draft.after, secrets),
        result=result,
        message=str(error)[:LONGEST_MESSAGE] if error is not None else draft.message,
        request_id=actor.request_id,
        address=actor.address,
        actor_tenant=actor.tenant,
    )


def _json(value: Any, secrets: tuple[str, ...]) -> str | None:
    if value is None:
        return None
    return msgspec.json.encode(masked(msgspec.to_builtins(value), secrets)).decode()
