"""Who sends a request: by an API token, or by the dashboard's session. Grants no permissions itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request

from ..app import Rota
from ..core.access import may, require
from ..model import Actor
from ..operate import credentials as access
from ..operate.sessions import Session, Sessions
from .cookies import allows_cookie, cookie_name
from .limits import Ticket
from .problems import Problem, unauthorised
from .requests import Origin

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def ticket_of(request: Request) -> Ticket:
    """The turns that this request has taken."""
    ticket: Ticket = request.state.ticket
    return ticket


class AuthenticatedCaller(NamedTuple):
    """The actor behind a request, and how it was authenticated."""

    actor: Actor
    credential: str  # open streams are counted by it
    session: Session | None = None
    session_id: str | None = None
    token: access.ApiToken | None = None


class Authenticator:
    """Authenticates requests, and rejects those that a browser sent for another site."""

    def __init__(self, rota: Rota, allowed_hosts: Sequence[str], behind_proxy: bool) -> None:
        self._rota = rota
        self._hosts = frozenset(allowed_hosts)
        self._behind_proxy = behind_proxy

    def origin(self, request: Request) -> Origin:
        return Origin(request, self._behind_proxy)

    async def authenticate(self, request: Request) -> AuthenticatedCaller:
        """The caller, or 401; 403 for a cookie without the proof that the request comes from this site."""
        caller = await self.find(request)
        if caller is None:
            raise unauthorised()
        await ticket_of(request).enter_credential(caller.credential)
        if caller.session is not None and caller.session_id is not None:
            self._check_same_site(request, caller.session)
            await (await self.sessions()).seen(caller.session_id, caller.session)
        return caller

    async def allow(self, caller: AuthenticatedCaller, permission: str) -> None:
        """Forbidden, unless the caller has the permission; what a token is used for is noted."""
        require(caller.actor, permission)
        await self.note_use(caller, permission)

    async def note_use(self, caller: AuthenticatedCaller, permission: str) -> None:
        """So that ``rota doctor`` can name tokens that have more rights than they use."""
        if caller.token is not None and may(caller.actor, permission):
            await access.used_for(await self._rota.stores.get(), self._rota.clock, caller.token, permission)

    async def find(self, request: Request) -> AuthenticatedCaller | None:
        """The caller; None if the request has no credential. An invalid token is a 401."""
        given = _own_header(request.headers.get("authorization"))
        found = await (self._by_token(request, given) if given is not None else self._by_cookie(request))
        if found is None:
            return None
        trace = {"request_id": request.state.request_id, "address": self.origin(request).address}
        return found._replace(actor=msgspec.structs.replace(found.actor, **trace))

    async def current_actor(self, caller: AuthenticatedCaller) -> Actor | None:
        """The caller's actor now, long after the request began; None: its credential has ended."""
        if caller.session_id is not None:
            found = await (await self.sessions()).find(caller.session_id)
            return None if found is None else found.actor
        if caller.token is None:
            return None
        token = await access.same_token(await self._rota.stores.get(), self._rota.clock, caller.token)
        return None if token is None else access.actor_of(token)

    async def sessions(self) -> Sessions:
        return Sessions(await self._rota.stores.get(), self._rota.clock)

    async def _by_token(self, request: Request, header: str) -> AuthenticatedCaller:
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer":
            raise unauthorised()
        store, address = await self._rota.stores.get(), self.origin(request).address
        found = await access.by_token(store, self._rota.clock, text.strip(), address)
        if found is None:
            raise unauthorised("Invalid API token: unknown, revoked or expired.")
        return AuthenticatedCaller(access.actor_of(found), f"token:{found.id}", token=found)

    async def _by_cookie(self, request: Request) -> AuthenticatedCaller | None:
        origin = self.origin(request)
        id = request.cookies.get(cookie_name(origin))
        if not id or not allows_cookie(origin):
            return None
        found = await (await self.sessions()).find(id)
        if found is None:
            return None
        token = found.credential if isinstance(found.credential, access.ApiToken) else None
        return AuthenticatedCaller(found.actor, found.session.credential, found.session, id, token)

    def _check_same_site(self, request: Request, session: Session) -> None:
        """A request with a cookie must come from the dashboard, which knows the session's CSRF token.

        Reads too: browsers send the cookie to programs on other ports of this host, which could replay it.
        """
        if request.method not in SAFE and not self.is_same_origin(request):
            raise Problem(403, "cross_site", "This request does not come from this server's own pages.")
        if not is_proven(request, session):
            raise Problem(403, "csrf", "The header X-CSRF-Token is missing or is not this session's.")

    def is_same_origin(self, request: Request) -> bool:
        """By Origin and Sec-Fetch-Site: at least one is required, and all given must agree."""
        site, given = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        if site is None and given is None:
            return False
        return (site is None or site == "same-origin") and (
            given is None or self._is_own_origin(request, given)
        )

    def _is_own_origin(self, request: Request, given: str) -> bool:
        origin = self.origin(request)
        if given == f"{origin.scheme}://{origin.host}":
            return True
        try:
            parts = urlsplit(given)
            behind = self._behind_proxy and parts.hostname in self._hosts
        except ValueError:
            return False
        return behind and parts.scheme == origin.scheme  # the proxy may rewrite Host


def _own_header(header: str | None) -> str | None:
    """``Basic`` is for a proxy in front, which may pass it on: a session counts beside it."""
    return None if header is not None and header.partition(" ")[0].lower() == "basic" else header


def is_proven(request: Request, session: Session) -> bool:
    """Whether the request comes from a page that knows the session's secret, not only its cookie."""
    return session.allows(request.headers.get("x-csrf-token", ""))
