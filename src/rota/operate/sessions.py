"""Sessions of the dashboard: documents in the store, keyed by the hash of the id in the cookie; and the
actions that list and end them.

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

from ..core.access import may
from ..errors import NotFound
from ..model import Actor, Document, Page, Value
from ..runtime.clock import Clock
from ..store.calls import find_document
from ..store.protocol import Store
from .actions import ActionGroup, requires
from .credentials import ApiToken, StoredUser, actor_of, find_credential, read_stored, stored_text
from .requests import EndSessionsRequest
from .views import EndedSessions, OpenSession

KIND = "session"
IDLE = timedelta(minutes=30)
LONGEST = timedelta(hours=12)
SEEN_EVERY = timedelta(minutes=1)
LINK = "link"
INSTANCE = secrets.token_hex(8)  # of this process, which one-time links belong to
LINKED = Actor(name="sign-in link", role="admin", payloads=True, via="http")
SHOWN = 12  # characters of the key that name a session


class Session(Value, frozen=True, kw_only=True):
    """A session as it is stored."""

    credential: str  # ``token:ID``, ``user:NAME``, ``link:INSTANCE``
    credential_at: datetime | None  # when that was changed last: a new password is another credential
    csrf: str  # proves, beside the cookie, that a request comes from the page that signed in
    name: str = ""
    role: str = ""
    tenant: str | None = None
    address: str | None = None
    agent: str | None = None
    created_at: datetime
    seen_at: datetime

    @property
    def ends_at(self) -> datetime:
        return min(self.created_at + LONGEST, self.seen_at + IDLE)

    def allows(self, csrf: str) -> bool:
        return hmac.compare_digest(csrf.encode(), self.csrf.encode())


class FoundSession(NamedTuple):
    """A session that has not ended, and who it belongs to now."""

    session: Session
    actor: Actor
    credential: ApiToken | StoredUser | None  # None: a one-time link


class Sessions:
    """Begins, finds and ends sessions."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def begin(
        self, found: ApiToken | StoredUser | None, address: str | None = None, agent: str | None = None
    ) -> tuple[str, Session]:
        """A new session for a credential (None: a one-time link), and its id, which is not stored."""
        await self._delete_expired()
        now, id = self._clock.now(), secrets.token_urlsafe(32)
        actor = _linked() if found is None else actor_of(found)
        session = Session(
            credential=actor.credential or "",
            credential_at=None if found is None else found.changed_at,
            csrf=secrets.token_urlsafe(32),
            name=actor.name,
            role=actor.role,
            tenant=actor.tenant,
            address=address,
            agent=agent,
            created_at=now,
            seen_at=now,
        )
        await self._store.put_document(KIND, key_of(id), stored_text(session), 0, now)
        return id, session

    async def find(self, id: str) -> FoundSession | None:
        """The session and its actor as they are now; None if it has ended."""
        document = await find_document(self._store, KIND, key_of(id))
        session = None if document is None else read_stored(document.body, Session)
        if document is None or session is None or session.ends_at <= self._clock.now():
            return None
        found = await self._owner(session)
        if found is None:
            await self._store.delete_document(KIND, document.key)
            return None
        actor = msgspec.structs.replace(found.actor, session=document.key[:SHOWN])
        return found._replace(actor=actor)

    async def seen(self, id: str, session: Session) -> None:
        """Keep the session from becoming idle. Written at most once a minute."""
        now = self._clock.now()
        if now - session.seen_at >= SEEN_EVERY and (
            document := await find_document(self._store, KIND, key_of(id))
        ):
            fresh = msgspec.structs.replace(session, seen_at=now)
            await self._store.put_document(KIND, document.key, stored_text(fresh), document.version, now)

    async def end(self, id: str) -> None:
        await self._store.delete_document(KIND, key_of(id))

    async def open(self) -> list[tuple[Document, Session]]:
        """Every session that has not ended, the one used last first."""
        found, now = list[tuple[Document, Session]](), self._clock.now()
        for document in await self._store.documents(KIND):
            session = read_stored(document.body, Session)
            if session is None or session.ends_at <= now:
                continue
            if session.credential.startswith(f"{LINK}:") or await self._owner(session) is not None:
                found.append((document, session))
        return sorted(found, key=lambda one: one[1].seen_at, reverse=True)

    async def _owner(self, session: Session) -> FoundSession | None:
        if session.credential.startswith(f"{LINK}:"):
            own = _linked()
            return FoundSession(session, own, None) if session.credential == own.credential else None
        found = await find_credential(self._store, self._clock, session.credential)
        if found is None or found.changed_at != session.credential_at:
            return None
        return FoundSession(session, actor_of(found), found)

    async def _delete_expired(self) -> None:
        """Delete sessions that expired without a sign-out; few, since this runs at each sign-in."""
        now = self._clock.now()
        for document in await self._store.documents(KIND):
            session = read_stored(document.body, Session)
            if session is None or session.ends_at <= now:
                await self._store.delete_document(KIND, document.key)


def _linked() -> Actor:
    return msgspec.structs.replace(LINKED, credential=f"{LINK}:{INSTANCE}")


def key_of(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()


# --- actions -------------------------------------------------------------------------------------


class SessionActions(ActionGroup):
    """Actions on sessions: one's own, and for admins all within their reach."""

    subject = "access"

    @requires("me")
    async def sessions(self) -> Page[OpenSession]:
        """List open sessions: your own, and all that you administer."""
        return Page(items=[self._open_view(*one) for one in await self._visible()])

    @requires("me", "session.end")
    async def end_session(self, id: str) -> None:
        """End a session: its browser must sign in again."""
        for document, session in await self._visible():
            if document.key[:SHOWN] == id:
                await self._end_one(document, session)
                return
        raise NotFound(f"there is no session {id!r}")

    @requires("me", "session.end")
    async def end_sessions(self, request: EndSessionsRequest) -> EndedSessions:
        """End all your own sessions, or all of one account."""
        actor, count = self.operations.actor, 0
        for document, session in await self._visible():
            is_own = session.credential == actor.credential
            is_kept = request.keep_current and document.key[:SHOWN] == actor.session
            if (is_own if request.name is None else session.name == request.name) and not is_kept:
                await self._end_one(document, session)
                count += 1
        return EndedSessions(count=count)

    async def _visible(self) -> list[tuple[Document, Session]]:
        actor = self.operations.actor
        found = await Sessions(await self.operations.store(), self.services.clock).open()
        return [
            (document, session)
            for document, session in found
            if (actor.credential is not None and session.credential == actor.credential)
            or (may(actor, "admin") and self.operations.sees(session.tenant))
        ]

    async def _end_one(self, document: Document, session: Session) -> None:
        object = f"session:{document.key[:SHOWN]}"
        async with self.operations.audited("session.end", object, session.tenant) as draft:
            draft.before = self._open_view(document, session)
            await (await self.operations.store()).delete_document(KIND, document.key)

    def _open_view(self, document: Document, session: Session) -> OpenSession:
        id = document.key[:SHOWN]
        return OpenSession(
            id=id,
            name=session.name,
            role=session.role,
            tenant=session.tenant,
            address=session.address,
            agent=session.agent,
            created_at=session.created_at,
            seen_at=session.seen_at,
            ends_at=session.ends_at,
            current=id == self.operations.actor.session,
        )
