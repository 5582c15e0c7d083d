"""Actors and audit entries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from .choices import Role, Via
from .value import Value


class Actor(Value, frozen=True, kw_only=True):
    """Who acts: for the rules of access, and for the audit log."""

    name: str
    role: Role = "viewer"
    tenant: str | None = None  # None: all tenants
    payloads: bool = False  # may see payloads and outputs
    via: Via = "python"
    tasks: tuple[str, ...] = ()  # that a producer may enqueue; empty: all
    queues: tuple[str, ...] = ()
    credential: str | None = None  # ``token:ID``, ``user:NAME`` or ``link:…``
    ends_at: datetime | None = None  # of the credential; None: never
    session: str | None = None  # id of the dashboard's session
    lasting: bool = True  # tokens that it creates do not end with its credential
    request_id: str | None = None
    address: str | None = None


class AuditEntry(Value, frozen=True, kw_only=True):
    """One entry of the audit log: actor, action, object and result. Never changed again."""

    action: str  # ``job.cancel``, ``queue.pause``, ``job.exhausted_retries``, ``email.sent`` …
    at: datetime
    id: str = ""  # given by the store: grows with time
    actor: str = "system"
    role: str | None = None
    via: str = "system"
    tenant: str | None = None  # of the object; None: it belongs to no tenant
    object: str | None = None  # ``job:ID``, ``queue:mail``, ``schedule:default/nightly``, ``token:ID`` …
    before_json: str | None = None
    after_json: str | None = None
    result: str = "done"
    message: str | None = None
    request_id: str | None = None
    address: str | None = None
    actor_tenant: str | None = None  # the tenant that the actor is limited to; None: it acts for all tenants

    @property
    def before(self) -> Any:
        return None if self.before_json is None else msgspec.json.decode(self.before_json)

    @property
    def after(self) -> Any:
        return None if self.after_json is None else msgspec.json.decode(self.after_json)


class AuditFilter(Value, frozen=True, kw_only=True):
    """Which lines; empty means all. Every given field must hold."""

    actor: str | None = None
    action: str | None = None  # exact, or all that begin with it when it ends with a dot: ``job.``
    object: str | None = None
    tenant: str | None = None
    result: str | None = None
    since_at: datetime | None = None
    until_at: datetime | None = None
    seal: int | None = None  # under the seal with this number; 0: not sealed yet


class AuditSeal(Value, frozen=True, kw_only=True):
    """A link of the hash chain over the audit log: it covers a batch of entries and the seal before it."""

    number: int  # 1, 2, 3 …
    previous: str  # the digest of the seal before it
    content: str  # the digest of its entries
    digest: str  # of everything above and below, but for ``pruned_at``
    entries: int  # how many it covers
    first_id: str
    last_id: str
    last_at: datetime  # the time of its latest entry
    sealed_at: datetime
    pruned_at: datetime | None = None  # its entries were deleted by age then; the seal stays


class AuditChain(Value, frozen=True, kw_only=True):
    """Where the hash chain begins and ends, and what is not in it yet."""

    base: AuditSeal | None = None  # the oldest seal that is stored
    head: AuditSeal | None = None
    unsealed: int = 0
    oldest_unsealed_at: datetime | None = None
    stray: int | None = (
        None  # the least seal that entries claim though it does not cover any: forged, or cut off
    )
