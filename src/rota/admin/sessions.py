"""Sessions of the dashboard: documents in the store, keyed by the hash of the id in the cookie.

A session ends after half an hour without a request, after twelve hours, when its credential is revoked or
changed, and at sign-out. One that began with a one-time link ends with the process that created the link.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ..model import Actor, Document, Value
from ..operate import credentials
from ..operate.credentials import ApiToken, StoredUser, actor_of, find_credential
from ..operate.sign_in_limits import DEVICE_LASTS
from ..runtime.clock import Clock
from ..store.calls import find_document
from ..store.protocol import Store
from .requests import LOOPBACK_NAMES, Origin

KIND = "session"
IDLE = timedelta(minutes=30)
LONGEST = timedelta(hours=12)
SEEN_EVERY = timedelta(minutes=1)
SECURE_COOKIE, LOCAL_COOKIE = "__Host-rota", "rota_session"
INSTANCE = secrets.token_hex(8)  # of this process, which one-time links belong to
LINKED = Actor(name="sign-in link", role="admin", payloads=True, via="http")


class Session(Value, frozen=True, kw_only=True):
    """A session as it is stored."""

    credential: str  # ``token:ID``, ``user:NAME``, ``link:INSTANCE``
    credential_at: datetime | None  # when that was created: a new password is another credential
    csrf: str
    created_at: datetime
    seen_at: datetime

    @property
    def ends_at(self) -> datetime:
        return min(self.created_at + LONGEST, self.seen_at + IDLE)

    def allows(self, csrf: str) -> bool:
        return hmac.compare_digest(csrf.encode(), self.csrf.encode())


def credential_of(found: ApiToken | StoredUser | None) -> str:
    return f"link:{INSTANCE}" if found is None else credentials.credential_of(found)


class FoundSession(NamedTuple):
    """A session that has not ended, and who it belongs to now."""

    session: Session
    actor: Actor
    credential: ApiToken | StoredUser | None  # None: a one-time link


class Sessions:
    """Begins, finds and ends sessions."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def begin(self, found: ApiToken | StoredUser | None) -> tuple[str, Session]:
        """A new session for a credential (None: a one-time link), and its id, which is not stored."""
        await self._delete_expired()
        now, id = self._clock.now(), secrets.token_urlsafe(32)
        session = Session(
            credential=credential_of(found),
            credential_at=None if found is None else found.changed_at,
            csrf=secrets.token_urlsafe(32),
            created_at=now,
            seen_at=now,
        )
        await self._store.put_document(KIND, _key(id), _text(session), 0, now)
        return id, session

    async def find(self, id: str) -> FoundSession | None:
        """The session and its actor as they are now; None if it has ended."""
        document = await find_document(self._store, KIND, _key(id))
        session = None if document is None else _read(document)
        if document is None or session is None or session.ends_at <= self._clock.now():
            return None
        found = await self._owner(session)
        if found is None:
            await self._store.delete_document(KIND, document.key)
        return found

    async def seen(self, id: str, session: Session) -> None:
        """Keep the session from becoming idle. Written at most once a minute."""
        now = self._clock.now()
        if now - session.seen_at >= SEEN_EVERY and (
            document := await find_document(self._store, KIND, _key(id))
        ):
            fresh = msgspec.structs.replace(session, seen_at=now)
            await self._store.put_document(KIND, document.key, _text(fresh), document.version, now)

    async def end(self, id: str) -> None:
        await self._store.delete_document(KIND, _key(id))

    async def _owner(self, session: Session) -> FoundSession | None:
        if session.credential.startswith("link:"):
            is_own = session.credential == f"link:{INSTANCE}"
            return FoundSession(session, LINKED, None) if is_own else None
        found = await find_credential(self._store, self._clock, session.credential)
        if found is None or found.changed_at != session.credential_at:
            return None
        return FoundSession(session, actor_of(found), found)

    async def _delete_expired(self) -> None:
        """Delete sessions that expired without a sign-out; few, since this runs at each sign-in."""
        now = self._clock.now()
        for document in await self._store.documents(KIND):
            session = _read(document)
            if session is None or session.ends_at <= now:
                await self._store.delete_document(KIND, document.key)


# --- cookies -------------------------------------------------------------------------------------


def device_of(request: Request, origin: Origin) -> str | None:
    """What a browser that has signed in before shows."""
    return request.cookies.get(_device_name(origin), "")[:100] or None


def set_device(response: Response, origin: Origin, device: str) -> None:
    response.set_cookie(
        _device_name(origin), device, path="/", secure=origin.is_secure, httponly=True, samesite="strict",
        max_age=int(DEVICE_LASTS.total_seconds()),
    )  # fmt: skip


def _device_name(origin: Origin) -> str:
    return f"{cookie_name(origin)}_device"


def allows_cookie(origin: Origin) -> bool:
    """A session cookie is sent over TLS, or never leaves the machine."""
    return origin.is_secure or origin.name in LOOPBACK_NAMES


def cookie_name(origin: Origin) -> str:
    return SECURE_COOKIE if origin.is_secure else LOCAL_COOKIE


def set_cookie(response: Response, origin: Origin, id: str) -> None:
    response.set_cookie(
        cookie_name(origin), id, path="/", secure=origin.is_secure, httponly=True, samesite="strict"
    )


def delete_cookie(response: Response, origin: Origin) -> None:
    response.delete_cookie(
        cookie_name(origin), path="/", secure=origin.is_secure, httponly=True, samesite="strict"
    )


def _key(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()


def _text(session: Session) -> str:
    return msgspec.json.encode(session).decode()


def _read(document: Document) -> Session | None:
    try:
        return msgspec.json.decode(document.body, type=Session)
    except msgspec.DecodeError:
        return None
