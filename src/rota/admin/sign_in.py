"""Signing in and out: ``/api/session``. Counts failures, audits both, and never stores a secret."""

from __future__ import annotations

import hmac
from datetime import datetime
from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from ..app import Rota
from ..core.access import may
from ..errors import OptionError
from ..model import Actor, AuditEntry
from ..operate import credentials as access
from ..operate.requests import ActionRequest
from ..operate.sessions import LINKED, LONGEST, Session
from ..operate.sign_in_limits import SignInLimits, TooManyTries
from ..operate.users import new_password
from ..operate.views import CurrentActor, View
from .authentication import AuthenticatedCaller, Authenticator, is_proven
from .cookies import allows_cookie, cookie_name, delete_cookie, device_of, set_cookie, set_device
from .limits import network
from .one_time_codes import OneTimeCodes
from .problems import Problem, unauthorised
from .requests import Origin, from_body, read_json
from .responses import json_response

Found = access.ApiToken | access.StoredUser | None
MOST_BODY = 16 * 1024


class SignInRequest(ActionRequest, frozen=True, kw_only=True):
    """A token; or a user and a password, and a new one if it is to change; or the code of a one-time link."""

    token: str | None = None
    user: str | None = None
    password: str | None = None
    new_password: Annotated[str, Meta(max_length=1000)] | None = None  # replaces the password
    once: str | None = None


class SessionView(View, frozen=True, kw_only=True):
    """Who is signed in, if anyone. Send ``csrf`` in the header X-CSRF-Token of every request."""

    me: CurrentActor | None
    csrf: str | None = None
    ends_at: datetime | None = None
    passwords: bool = False  # there is a user who signs in with one


class SignIn:
    """The endpoints of ``/api/session``."""

    def __init__(self, rota: Rota, authenticator: Authenticator) -> None:
        self._rota, self._authenticator = rota, authenticator
        self.limits = SignInLimits()
        self.codes = OneTimeCodes(rota.clock)

    async def show(self, request: Request) -> Response:
        """Who is signed in. Open to all: it may be no one."""
        caller = await self._authenticator.find(request)
        if caller is not None and caller.session is not None and not is_proven(request, caller.session):
            caller = None  # the cookie alone is not enough
        return json_response(await self._view(caller))

    async def login(self, request: Request) -> Response:
        """Begin a session, always with a new id; the one that the browser had ends."""
        origin = self._authenticator.origin(request)
        credentials = from_body(await read_json(request, MOST_BODY), SignInRequest)
        if not allows_cookie(origin):
            raise Problem(403, "insecure", "Signing in requires https, or a browser on this machine.")
        if request.headers.get("origin") is not None and not self._authenticator.is_same_origin(request):
            raise Problem(403, "cross_site", "This request does not come from this server's own pages.")
        found, device = await self._checked(credentials, origin, request)
        actor = LINKED if found is None else access.actor_of(found)
        if not may(actor, "read"):
            raise Problem(403, "no_dashboard", "This token may only enqueue jobs: sign in with another.")
        sessions = await self._authenticator.sessions()
        if previous := request.cookies.get(cookie_name(origin)):
            await sessions.end(previous)
        agent = request.headers.get("user-agent", "")[:200] or None
        id, session = await sessions.begin(found, origin.address, agent)
        await self._record("session.login", actor.name, actor, "done", origin, request.state.request_id)
        response = json_response(
            await self._view(AuthenticatedCaller(actor, session.credential, session, id))
        )
        set_cookie(response, origin, id)
        if device is not None:
            set_device(response, origin, device)
        return response

    async def logout(self, request: Request) -> Response:
        """End the session."""
        caller = await self._authenticator.authenticate(request)
        origin = self._authenticator.origin(request)
        response = Response(status_code=204)
        if caller.session_id is not None:
            await (await self._authenticator.sessions()).end(caller.session_id)
            await self._record(
                "session.logout", caller.actor.name, caller.actor, "done", origin, request.state.request_id
            )
            delete_cookie(response, origin)
        return response

    async def _checked(
        self, credentials: SignInRequest, origin: Origin, request: Request
    ) -> tuple[Found, str | None]:
        """The credential (None: a one-time link), and a cookie for a browser that was not known."""
        store, clock = await self._rota.stores.get(), self._rota.clock
        account = None if credentials.user is None else credentials.user[:200]
        try:
            tried = await self.limits.begin(
                store, clock, account, network(origin.address), device_of(request, origin)
            )
        except TooManyTries as error:
            seconds = str(int(error.seconds) + 1)
            text = f"Too many failures: try again in {seconds} s."
            raise Problem(429, "too_many_tries", text, headers={"Retry-After": seconds}) from None
        is_valid, found = await self._find(credentials, origin)
        id = request.state.request_id
        if not is_valid:
            await self._record("session.login", _name(credentials), None, "denied", origin, id)
            raise unauthorised("The token, password or link is invalid or expired.")
        device = await self.limits.succeeded(store, clock, tried)
        if isinstance(found, access.StoredUser):
            found = await self._with_new_password(found, credentials, origin, id)
        return found, device

    async def _with_new_password(
        self, user: access.StoredUser, credentials: SignInRequest, origin: Origin, request_id: str
    ) -> access.StoredUser:
        """The user, with the password that was asked for; all sessions with the old one end."""
        password = credentials.new_password
        if password is None:
            if user.must_change:
                raise Problem(403, "must_change_password", "Choose a new password: send it as new_password.",
                              field="new_password")  # fmt: skip
            return user
        if hmac.compare_digest(password.encode(), (credentials.password or "").encode()):
            raise Problem(422, "bad_input", "new_password: is the old one", field="new_password")
        try:
            changed = await new_password(await self._rota.stores.get(), self._rota.clock, user, password)
        except OptionError as error:
            raise Problem(422, "bad_input", str(error), field="new_password") from None
        actor = access.actor_of(changed)
        await self._record("user.password", actor.name, actor, "done", origin, request_id, actor.credential)
        return changed

    async def _find(self, credentials: SignInRequest, origin: Origin) -> tuple[bool, Found]:
        store = await self._rota.stores.get()
        found: Found = None
        if credentials.token is not None:
            found = await access.by_token(store, self._rota.clock, credentials.token.strip(), origin.address)
            if found is not None and access.is_replaced(found):  # a session would outlast the overlap
                found = None
        elif credentials.user is not None and credentials.password is not None:
            found = await access.by_password(store, self._rota.clock, credentials.user, credentials.password)
        elif credentials.once is not None:
            return origin.is_local and self.codes.take(credentials.once), None
        else:
            raise Problem(422, "bad_input", "give a token, or user and password, or once", field="token")
        return found is not None, found

    async def _view(self, caller: AuthenticatedCaller | None) -> SessionView:
        has_users = bool(await (await self._rota.stores.get()).documents(access.USER))
        if caller is None:
            return SessionView(me=None, passwords=has_users)
        session: Session | None = caller.session
        return SessionView(
            me=await self._rota.operations(caller.actor).system.me(),
            csrf=None if session is None else session.csrf,
            ends_at=None if session is None else session.created_at + LONGEST,
            passwords=has_users,
        )

    async def _record(
        self,
        action: str,
        name: str,
        actor: Actor | None,
        result: str,
        origin: Origin,
        request_id: str,
        object: str | None = None,
    ) -> None:
        entry = AuditEntry(
            action=action,
            at=self._rota.clock.now(),
            actor=name[:200],
            role=None if actor is None else actor.role,
            via="http",
            tenant=None if actor is None else actor.tenant,
            object=object,
            result=result,
            request_id=request_id,
            address=origin.address,
            actor_tenant=None if actor is None else actor.tenant,
        )
        await (await self._rota.stores.get()).append_audit([entry])


def _name(credentials: SignInRequest) -> str:
    """The account that someone tries to sign in to; never a secret."""
    if credentials.user is not None:
        return f"user:{credentials.user[:200]}"
    if credentials.token is not None and len(parts := credentials.token.strip().split("_", 2)) == 3:
        return f"token:{parts[1][:20]}"
    return "unknown"
