"""The audit trail of what is done through this program: around each act, one line in the store's audit log.

Who acts is known by context: the desk of an operator says so for the time of an action; otherwise it is
the program itself. What a worker decides about jobs is told with the job's change, not here.
"""

from __future__ import annotations

import getpass
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.payload.masking import masked
from ..errors import RotaError, StoreError
from ..model import Actor, AuditEntry, Via

if TYPE_CHECKING:
    from ..app import Rota

log = logging.getLogger("rota.audit")

ACTOR: ContextVar[Actor | None] = ContextVar("rota_actor", default=None)
LONGEST_MESSAGE = 500


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
    """What the log shall tell of an act; filled in while it goes on."""

    def __init__(self, action: str, object: str | None, tenant: str | None) -> None:
        self.action, self.object, self.tenant = action, object, tenant
        self.before: Any = None
        self.after: Any = None
        self.message: str | None = None


@asynccontextmanager
async def audited(
    app: Rota, action: str, object: str | None = None, tenant: str | None = None
) -> AsyncIterator[AuditDraft]:
    """Around what changes something: one line in the audit log, whatever becomes of it."""
    note = AuditDraft(action, object, tenant)
    try:
        yield note
    except Exception as error:
        is_refusal = isinstance(error, RotaError) and not isinstance(error, StoreError)
        await record(app, note, "refused" if is_refusal else "failed", error)
        raise
    await record(app, note, "done")


async def record(app: Rota, note: AuditDraft, result: str, error: Exception | None = None) -> None:
    """Add the line. The act itself stands whatever comes of it, so a store that is away is only logged."""
    actor = ACTOR.get() or program()
    entry = AuditEntry(
        action=note.action,
        at=app.clock.now(),
        actor=actor.name,
        role=actor.role,
        via=actor.via,
        tenant=note.tenant,
        object=note.object,
        before_json=_json(note.before, app.settings.secret_fields),
        after_json=_json(note.after, app.settings.secret_fields),
        result=result,
        message=str(error)[:LONGEST_MESSAGE] if error is not None else note.message,
        request_id=actor.request_id,
        address=actor.address,
    )
    try:
        await (await app.stores.get()).append_audit([entry])
    except StoreError as failure:
        log.error("not in the audit log: %s by %s: %s (%s)", entry.action, entry.actor, result, failure)


def _json(value: Any, secrets: tuple[str, ...]) -> str | None:
    if value is None:
        return None
    return msgspec.json.encode(masked(msgspec.to_builtins(value), secrets)).decode()
