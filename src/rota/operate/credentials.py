"""API tokens and users as they are stored, and authentication by them. Grants and revokes nothing.

A secret is stored hashed and compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from typing import TypeVar

import msgspec

from ..core.access import least_role, reaches
from ..model import Actor, Role, Value, Via
from ..runtime.clock import Clock
from ..store.calls import find_document
from ..store.protocol import Store
from . import passwords

T = TypeVar("T")

TOKEN, USER = "token", "user"
PREFIX = "rota"
USED_EVERY_S = 60.0  # how precise the time of the last use is


class ApiToken(Value, frozen=True, kw_only=True):
    """An API token as it is stored: without its secret."""

    id: str  # public: the second part of the token
    hash: str  # SHA-256 of the secret part
    role: Role
    name: str = ""
    tenant: str | None = None
    payloads: bool = False
    tasks: tuple[str, ...] = ()  # of a producer; empty: all
    queues: tuple[str, ...] = ()
    created_at: datetime
    created_by: str
    creator_tenant: str | None = None  # that the creator was limited to: others must not learn its name
    ends_with: str | None = None  # id of the token that created it: it is revoked with that one
    first: bool = False  # created at the first start, to create the others: they do not end with it
    expires_at: datetime | None = None
    rotated_at: datetime | None = None
    previous_hash: str | None = None  # of the secret before the last rotation
    previous_until: datetime | None = None
    last_used_at: datetime | None = None
    last_used_from: str | None = None  # address
    needed: Role | None = None  # the least role that would have done for all its uses

    @property
    def changed_at(self) -> datetime:
        """Sessions that began before have ended."""
        return self.rotated_at or self.created_at


class StoredUser(Value, frozen=True, kw_only=True):
    """A user who signs in with a password, as it is stored."""

    name: str
    salt: str
    hash: str  # scrypt
    scrypt: passwords.Parameters = passwords.FIRST
    role: Role
    tenant: str | None = None
    payloads: bool = False
    created_at: datetime
    password_at: datetime | None = None  # when it was changed since
    must_change: bool = False  # the password, at the next sign-in

    @property
    def changed_at(self) -> datetime:
        return self.password_at or self.created_at


# --- authentication ------------------------------------------------------------------------------


async def by_token(store: Store, clock: Clock, text: str, address: str | None = None) -> ApiToken | None:
    """The API token with this text, as its secret may use it; None if it is unknown or has expired.

    Its last use is stored.
    """
    parts = text.split("_", 2)
    if len(parts) != 3 or parts[0] != PREFIX or not parts[1].isalnum() or len(text) > 200:
        return None
    document = await find_document(store, TOKEN, parts[1])
    found = None if document is None else read_stored(document.body, ApiToken)
    now = clock.now()
    usable = _used_with(found, secret_hash(parts[2]), now)
    if usable is None or found is None or document is None or is_expired(found, now):
        return None
    if found.last_used_at is None or (now - found.last_used_at).total_seconds() > USED_EVERY_S:
        used = msgspec.structs.replace(found, last_used_at=now, last_used_from=address)
        await store.put_document(TOKEN, found.id, stored_text(used), document.version, now)
    return usable


async def same_token(store: Store, clock: Clock, used: ApiToken) -> ApiToken | None:
    """A token that ``by_token`` found before, as it is now; None if it or its secret has ended."""
    now = clock.now()
    document = await find_document(store, TOKEN, used.id)
    found = None if document is None else read_stored(document.body, ApiToken)
    usable = _used_with(found, used.hash, now)
    return None if usable is None or is_expired(usable, now) else usable


def _used_with(token: ApiToken | None, hash: str, now: datetime) -> ApiToken | None:
    """The token as the secret with this hash may use it. The secret before the last rotation ends soon, and
    so does what it creates.

    Takes as long for an unknown token as for a known one.
    """
    nothing = secret_hash("nothing")
    until = None if token is None else token.previous_until
    previous = (
        token.previous_hash if token is not None and until is not None and now < until else None
    ) or ""
    is_current = hmac.compare_digest(hash, nothing if token is None else token.hash)
    is_previous = hmac.compare_digest(hash, previous or nothing)
    if token is None or is_current or not is_previous or until is None:
        return token if is_current else None
    end = until if token.expires_at is None else min(until, token.expires_at)
    return msgspec.structs.replace(token, hash=hash, expires_at=end, first=False)


def is_replaced(used: ApiToken) -> bool:
    """Whether ``by_token`` has found it by the secret before its last rotation."""
    return hmac.compare_digest(used.hash, used.previous_hash or "")


async def used_for(store: Store, clock: Clock, token: ApiToken, permission: str) -> None:
    """Store that the token has used a permission, if that needs more than all uses before: rarely."""
    role = least_role(permission)
    if token.needed is not None and reaches(token.needed, role):
        return
    document = await find_document(store, TOKEN, token.id)
    current = None if document is None else read_stored(document.body, ApiToken)
    if document is not None and current is not None:
        raised = msgspec.structs.replace(current, needed=role)
        await store.put_document(TOKEN, token.id, stored_text(raised), document.version, clock.now())


async def by_password(store: Store, clock: Clock, name: str, password: str) -> StoredUser | None:
    """The user, or None. Same cost for unknown names, so that timing does not reveal users.

    A hash of less than today's cost is replaced, and made in any case: time must not show such a user.
    """
    document = await find_document(store, USER, name) if 0 < len(name) <= 200 else None
    found = None if document is None else read_stored(document.body, StoredUser)
    salt = found.salt if found is not None else "00" * 16
    given = await passwords.hashed(password, salt, passwords.CURRENT if found is None else found.scrypt)
    kept = found.hash if found is not None else "00" * 32
    is_outdated = found is not None and passwords.is_outdated(found.scrypt)
    fresh = await passwords.new_hash(password) if is_outdated else None
    if not hmac.compare_digest(given, kept) or found is None or document is None:
        return None
    if fresh is not None:
        body = stored_text(msgspec.structs.replace(found, **fresh._asdict()))
        await store.put_document(USER, name, body, document.version, clock.now())
    return found


async def find_credential(store: Store, clock: Clock, credential: str) -> ApiToken | StoredUser | None:
    """The credential ``token:ID`` or ``user:NAME`` as it is now; None if it was revoked or has expired."""
    kind, _, key = credential.partition(":")
    document = await find_document(store, kind, key) if kind in (TOKEN, USER) else None
    if document is None:
        return None
    if kind == USER:
        return read_stored(document.body, StoredUser)
    found = read_stored(document.body, ApiToken)
    return found if found is not None and not is_expired(found, clock.now()) else None


def credential_of(found: ApiToken | StoredUser) -> str:
    return f"{TOKEN}:{found.id}" if isinstance(found, ApiToken) else f"{USER}:{found.name}"


def actor_of(found: ApiToken | StoredUser, via: Via = "http") -> Actor:
    actor = Actor(
        name=_name_of(found),
        role=found.role,
        tenant=found.tenant,
        payloads=found.payloads,
        via=via,
        credential=credential_of(found),
    )
    if isinstance(found, StoredUser):
        return actor
    scoped = msgspec.structs.replace(actor, tasks=found.tasks, queues=found.queues)
    return scoped if found.first else msgspec.structs.replace(scoped, ends_at=found.expires_at, lasting=False)


def _name_of(found: ApiToken | StoredUser) -> str:
    """The name in the audit log: no one can choose a name that belongs to someone else."""
    if isinstance(found, StoredUser):
        return f"user:{found.name}"
    return f"token:{found.name}#{found.id}" if found.name else f"token:{found.id}"


def is_expired(token: ApiToken, now: datetime) -> bool:
    return token.expires_at is not None and token.expires_at <= now


async def has_any(store: Store) -> bool:
    """Whether there is any credential at all."""
    return bool(await store.documents(TOKEN) or await store.documents(USER))


async def stored_tokens(store: Store) -> list[ApiToken]:
    found = [read_stored(one.body, ApiToken) for one in await store.documents(TOKEN)]
    return [one for one in found if one is not None]


async def stored_users(store: Store) -> list[StoredUser]:
    found = [read_stored(one.body, StoredUser) for one in await store.documents(USER)]
    return [one for one in found if one is not None]


# --- hashes and documents ------------------------------------------------------------------------


def secret_hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def stored_text(value: Value) -> str:
    return msgspec.json.encode(value).decode()


def read_stored(body: str, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError:
        return None
