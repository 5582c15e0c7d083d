"""API tokens and passwords: authentication, and the actions that grant and revoke them.

A secret is shown once, stored hashed and compared in constant time. No actor can grant more than it has.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from ..core.access import reaches
from ..core.jobs.options import name_text
from ..errors import AlreadyRegistered, Forbidden, IllegalMove, NotFound, OptionError
from ..model import Actor, Page, Role, Value, Via
from ..runtime.clock import Clock
from ..store.calls import find_document
from ..store.protocol import Store
from .actions import ActionGroup, requires
from .requests import SHORTEST_PASSWORD, CreateTokenRequest, PutUserRequest
from .views import NewToken, TokenView, UserView

T = TypeVar("T")

TOKEN, USER = "token", "user"
PREFIX = "rota"
USED_EVERY_S = 60.0  # how precise the time of the last use is
SCRYPT = {"n": 2**14, "r": 8, "p": 1, "maxmem": 64 * 1024 * 1024}


class ApiToken(Value, frozen=True, kw_only=True):
    """An API token as it is stored: without its secret."""

    id: str  # public: the second part of the token
    hash: str  # SHA-256 of the secret part
    role: Role
    name: str = ""
    tenant: str | None = None
    payloads: bool = False
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    last_used_at: datetime | None = None


class StoredUser(Value, frozen=True, kw_only=True):
    """A user who signs in with a password, as it is stored."""

    name: str
    salt: str
    hash: str  # scrypt
    role: Role
    tenant: str | None = None
    payloads: bool = False
    created_at: datetime


Credential = TypeVar("Credential", ApiToken, StoredUser)


# --- authentication ------------------------------------------------------------------------------


async def by_token(store: Store, clock: Clock, text: str) -> ApiToken | None:
    """The API token with this text; None if it is unknown or has expired."""
    parts = text.split("_", 2)
    if len(parts) != 3 or parts[0] != PREFIX or not parts[1].isalnum() or len(text) > 200:
        return None
    document = await find_document(store, TOKEN, parts[1])
    found = None if document is None else _read(document.body, ApiToken)
    kept = found.hash if found is not None else _hash("nothing")
    if not hmac.compare_digest(_hash(parts[2]), kept) or found is None or document is None:
        return None
    if is_expired(found, clock.now()):
        return None
    if found.last_used_at is None or (clock.now() - found.last_used_at).total_seconds() > USED_EVERY_S:
        used = msgspec.structs.replace(found, last_used_at=clock.now())
        await store.put_document(TOKEN, found.id, _text(used), document.version, clock.now())
    return found


async def by_password(store: Store, name: str, password: str) -> StoredUser | None:
    """The user, or None. Same cost for unknown names, so that timing does not reveal users."""
    document = await find_document(store, USER, name) if 0 < len(name) <= 200 else None
    found = None if document is None else _read(document.body, StoredUser)
    salt = found.salt if found is not None else "00" * 16
    given = await asyncio.to_thread(_scrypt, password, salt)
    kept = found.hash if found is not None else "00" * 32
    return found if hmac.compare_digest(given, kept) else None


async def find_credential(store: Store, clock: Clock, credential: str) -> ApiToken | StoredUser | None:
    """The credential ``token:ID`` or ``user:NAME`` as it is now; None if it was revoked or has expired."""
    kind, _, key = credential.partition(":")
    document = await find_document(store, kind, key) if kind in (TOKEN, USER) else None
    if document is None:
        return None
    if kind == USER:
        return _read(document.body, StoredUser)
    found = _read(document.body, ApiToken)
    return found if found is not None and not is_expired(found, clock.now()) else None


def actor_of(found: ApiToken | StoredUser, via: Via = "http") -> Actor:
    return Actor(
        name=_name_of(found),
        role=found.role,
        tenant=found.tenant,
        payloads=found.payloads,
        via=via,
        ends_at=found.expires_at if isinstance(found, ApiToken) else None,
    )


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


# --- actions -------------------------------------------------------------------------------------


class AccessActions(ActionGroup):
    """Actions on API tokens and users."""

    subject = "access"

    @requires("admin")
    async def tokens(self) -> Page[TokenView]:
        """List API tokens, without their secrets."""
        found = [_read(one.body, ApiToken) for one in await (await self.operations.store()).documents(TOKEN)]
        return Page(
            items=[_view(one) for one in found if one is not None and self.operations.sees(one.tenant)]
        )

    @requires("admin", "token.create")
    async def create_token(self, request: CreateTokenRequest) -> NewToken:
        """Create an API token; its text is returned only here."""
        tenant, payloads = self._grantable(request.role, request.tenant, request.payloads)
        now, secret = self.services.clock.now(), secrets.token_urlsafe(32)
        token = ApiToken(
            id=secrets.token_hex(6),
            hash=_hash(secret),
            role=request.role,
            name=request.name,
            tenant=tenant,
            payloads=payloads,
            created_at=now,
            created_by=self.operations.actor.name,
            expires_at=self._end(
                None if request.expires_s is None else now + timedelta(seconds=request.expires_s)
            ),
        )
        async with self.operations.audited("token.create", f"token:{token.id}", tenant) as draft:
            await (await self.operations.store()).put_document(TOKEN, token.id, _text(token), 0, now)
            shown = _view(token)
            draft.after = shown
            return NewToken(**msgspec.structs.asdict(shown), token=f"{PREFIX}_{token.id}_{secret}")

    @requires("admin", "token.revoke")
    async def revoke_token(self, id: str) -> None:
        """Revoke an API token; requests with it fail from now on."""
        found = await self._own(TOKEN, id, ApiToken)
        async with self.operations.audited(
            "token.revoke", f"token:{id}", (found and found.tenant) or None
        ) as draft:
            draft.before = found and _view(found)
            await (await self.operations.store()).delete_document(TOKEN, id)

    @requires("admin")
    async def users(self) -> Page[UserView]:
        """List users who sign in with a password."""
        found = [_read(one.body, StoredUser) for one in await (await self.operations.store()).documents(USER)]
        return Page(
            items=[_user(one) for one in found if one is not None and self.operations.sees(one.tenant)]
        )

    @requires("admin", "user.put")
    async def put_user(self, name: str, request: PutUserRequest) -> UserView:
        """Create a user or change its password; this ends the user's sessions."""
        name_text("user", name)
        if len(request.password) < SHORTEST_PASSWORD:
            raise OptionError(f"the password is too short: at least {SHORTEST_PASSWORD} characters")
        tenant, payloads = self._grantable(request.role, request.tenant, request.payloads)
        if self.operations.actor.ends_at is not None:
            raise Forbidden(
                f"{self.operations.actor.name} expires, and a user does not: use a token without an end"
            )
        store, now = await self.operations.store(), self.services.clock.now()
        document = await find_document(store, USER, name)
        before = None if document is None else _read(document.body, StoredUser)
        if before is not None and not self.operations.sees(before.tenant):
            raise Forbidden(f"the name {name!r} is taken: choose another")
        salt = secrets.token_hex(16)
        user = StoredUser(
            name=name,
            salt=salt,
            hash=await asyncio.to_thread(_scrypt, request.password, salt),
            role=request.role,
            tenant=tenant,
            payloads=payloads,
            created_at=now,
        )
        async with self.operations.audited("user.put", f"user:{name}", tenant) as draft:
            expected = 0 if document is None or request.new else document.version
            if await store.put_document(USER, name, _text(user), expected, now) is None:
                if request.new:
                    raise AlreadyRegistered(
                        f"there is a user {name!r} already: change that one instead, or choose another name"
                    )
                raise IllegalMove(f"user {name!r} is being changed by someone else: try again")
            draft.before, draft.after = before and _user(before), _user(user)
            return _user(user)

    @requires("admin", "user.delete")
    async def delete_user(self, name: str) -> None:
        """Delete a user."""
        found = await self._own(USER, name, StoredUser)
        async with self.operations.audited(
            "user.delete", f"user:{name}", (found and found.tenant) or None
        ) as draft:
            draft.before = found and _user(found)
            await (await self.operations.store()).delete_document(USER, name)

    async def _own(self, kind: str, key: str, form: type[Credential]) -> Credential | None:
        """The credential, if the actor may see it; None: it exists, but cannot be read."""
        document = await find_document(await self.operations.store(), kind, key)
        found = None if document is None else _read(document.body, form)
        if document is None or (found is not None and not self.operations.sees(found.tenant)):
            raise NotFound(f"there is no {kind} {key!r}")
        return found

    def _grantable(self, role: Role, tenant: str | None, payloads: bool | None) -> tuple[str | None, bool]:
        """Tenant and payload access of a new credential: no actor grants more than it has."""
        actor = self.operations.actor
        if not reaches(actor.role, role):
            raise Forbidden(
                f"{actor.name} is {actor.role} and cannot create a credential with the role {role}"
            )
        if payloads and not actor.payloads:
            raise Forbidden(f"{actor.name} cannot grant payload access without having it")
        usual = role != "viewer" and actor.payloads
        return self.operations.tenant(tenant), usual if payloads is None else payloads

    def _end(self, requested: datetime | None) -> datetime | None:
        """When a new token expires: never after the credential that creates it."""
        ends = [end for end in (requested, self.operations.actor.ends_at) if end is not None]
        return min(ends, default=None)


# --- hashes and documents ------------------------------------------------------------------------


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _scrypt(password: str, salt: str) -> str:
    return hashlib.scrypt(password.encode(), salt=bytes.fromhex(salt), dklen=32, **SCRYPT).hex()


def _text(value: Value) -> str:
    return msgspec.json.encode(value).decode()


def _read(body: str, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError:
        return None


def _view(token: ApiToken) -> TokenView:
    return TokenView(**{name: getattr(token, name) for name in TokenView.__struct_fields__})


def _user(user: StoredUser) -> UserView:
    return UserView(**{name: getattr(user, name) for name in UserView.__struct_fields__})
