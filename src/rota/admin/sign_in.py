"""Signing in and out: ``/api/session``. Counts failures, audits both, and never stores a secret."""

from __future__ import annotations

from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from ..app import Rota
from ..core.access import may
from ..model import Actor, AuditEntry
from ..operate import credentials as access
from ..operate.requests import ActionRequest
from ..operate.views import CurrentActor, View
from .authentication import AuthenticatedCaller, Authenticator
from .problems import Problem, unauthorised
from .requests import Origin, from_body, read_json
from .responses import json_response
from .sessions import LINKED, LONGEST, Session, allows_cookie, delete_cookie, set_cookie
from .sign_in_throttle import OneTimeCodes, SignInThrottle

Found = access.ApiToken | access.StoredUser | None
MOST_BODY = 16 * 1024


class SignInRequest(ActionRequest, frozen=True, kw_only=True):
    """A token; or a user and a password; or the code of a one-time link."""

    token: str | None = None
    user: str | None = None
    password: str | None = None
    once: str | None = None


class SessionView(View, frozen=True, kw_only=True):
    """Who is signed in, if anyone. Send ``csrf`` in the header X-CSRF-Token of every write."""

    me: CurrentActor | None
    csrf: str | None = None
    ends_at: datetime | None = None
    passwords: bool = False  # there is a user who signs in with one


class SignIn:
    """The endpoints of ``/api/session``."""

    def __init__(self, rota: Rota, authenticator: Authenticator) -> None:
        self._rota, self._authenticator = rota, authenticator
        self.throttle = SignInThrottle(rota.clock)
        self.codes = OneTimeCodes(rota.clock)

    async def show(self, request: Request) -> Response:
        """Who is signed in. Open to all: it may be no one."""
        caller = await self._authenticator.find(request)
        return json_response(await self._view(caller))

    async def login(self, request: Request) -> Response:
        """Begin a session, always with a new id."""
        origin = self._authenticator.origin(request)
        credentials = from_body(await read_json(request, MOST_BODY), SignInRequest)
        if not allows_cookie(origin):
            raise Problem(403, "insecure", "Signing in requires https, or a browser on this machine.")
        if request.headers.get("origin") is not None and not self._authenticator.is_same_origin(request):
            raise Problem(403, "cross_site", "This request does not come from this server's own pages.")
        found = await self._checked(credentials, origin, request.state.request_id)
        actor = LINKED if found is None else access.actor_of(found)
        if not may(actor, "read"):
            raise Problem(403, "no_dashboard", "This token may only enqueue jobs: sign in with another.")
        id, session = await (await self._authenticator.sessions()).begin(found)
        await self._record("session.login", actor.name, actor, "done", origin, request.state.request_id)
        response = json_response(
            await self._view(AuthenticatedCaller(actor, session.credential, session, id))
        )
        set_cookie(response, origin, id)
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

    async def _checked(self, credentials: SignInRequest, origin: Origin, request_id: str) -> Found:
        """The credential; None: a one-time link. Failures are counted by account and by address."""
        account = _account(credentials)
        keys = [f"address:{origin.address}"] + ([f"account:{account}"] if account else [])
        if (seconds := self.throttle.wait(*keys)) > 0:
            raise Problem(
                429,
                "too_many_tries",
                f"Too many failures: try again in {int(seconds) + 1} s.",
                headers={"Retry-After": str(int(seconds) + 1)},
            )
        self.throttle.failed(*keys)  # before the check, which takes time in which others may try
        is_valid, found = await self._find(credentials, origin)
        if not is_valid:
            await self._record("session.login", account or "unknown", None, "denied", origin, request_id)
            raise unauthorised("The token, password or link is invalid or expired.")
        self.throttle.undo_failure(keys[0])
        self.throttle.succeeded(
            *keys[1:]
        )  # not the address: one valid password must not allow guesses at others
        return found

    async def _find(self, credentials: SignInRequest, origin: Origin) -> tuple[bool, Found]:
        store = await self._rota.stores.get()
        found: Found = None
        if credentials.token is not None:
            found = await access.by_token(store, self._rota.clock, credentials.token.strip(), origin.address)
        elif credentials.user is not None and credentials.password is not None:
            found = await access.by_password(store, credentials.user, credentials.password)
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
        self, action: str, name: str, actor: Actor | None, result: str, origin: Origin, request_id: str
    ) -> None:
        entry = AuditEntry(
            action=action,
            at=self._rota.clock.now(),
            actor=name[:200],
            role=None if actor is None else actor.role,
            via="http",
            tenant=None if actor is None else actor.tenant,
            result=result,
            request_id=request_id,
            address=origin.address,
        )
        await (await self._rota.stores.get()).append_audit([entry])


def _account(credentials: SignInRequest) -> str | None:
    """The account that someone tries to sign in to; never a secret."""
    if credentials.user is not None:
        return f"user:{credentials.user[:200]}"
    if credentials.token is not None and len(parts := credentials.token.strip().split("_", 2)) == 3:
        return f"token:{parts[1][:20]}"
    return None
