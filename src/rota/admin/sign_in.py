"""Signing in and out: ``/api/session``."""

from __future__ import annotations

from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from ..app import Rota
from ..model import Actor, AuditEntry
from ..operate import access
from ..operate.requests import ActionRequest
from ..operate.views import CurrentActor, View
from .authentication import AuthenticatedCaller, Authenticator
from .problems import Problem, unauthorised
from .requests import Origin, from_body, read_json
from .responses import answer
from .sessions import LINKED, LONGEST, Session, can_have, drop_cookie, set_cookie
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
    """Who is signed in, if anybody. ``csrf`` goes into the header X-CSRF-Token of every write."""

    me: CurrentActor | None
    csrf: str | None = None
    ends_at: datetime | None = None
    passwords: bool = False  # somebody can sign in with one


class SignIn:
    def __init__(self, rota: Rota, callers: Authenticator) -> None:
        self._rota, self._callers = rota, callers
        self.limit = SignInThrottle(rota.clock)
        self.codes = OneTimeCodes(rota.clock)

    async def show(self, request: Request) -> Response:
        """Who am I? Open to all: nobody is an answer too."""
        caller = await self._callers.known(request)
        return answer(await self._view(caller))

    async def login(self, request: Request) -> Response:
        """Begin a session; the id is a new one, whatever the browser had."""
        origin = self._callers.origin(request)
        ask = from_body(await read_json(request, MOST_BODY), SignInRequest)
        if not can_have(origin):
            raise Problem(403, "insecure", "Signing in needs https, or a browser on this machine.")
        if request.headers.get("origin") is not None and not self._callers.is_same_origin(request):
            raise Problem(403, "cross_site", "This request does not come from this server's own pages.")
        found = await self._checked(ask, origin, request.state.request_id)
        actor = LINKED if found is None else access.actor_of(found)
        id, session = await (await self._callers.sessions()).begin(found)
        await self._told("session.login", actor.name, actor, "done", origin, request.state.request_id)
        response = answer(await self._view(AuthenticatedCaller(actor, session.credential, session, id)))
        set_cookie(response, origin, id)
        return response

    async def logout(self, request: Request) -> Response:
        """End the session."""
        caller = await self._callers.of(request)
        origin = self._callers.origin(request)
        response = Response(status_code=204)
        if caller.session_id is not None:
            await (await self._callers.sessions()).end(caller.session_id)
            await self._told(
                "session.logout", caller.actor.name, caller.actor, "done", origin, request.state.request_id
            )
            drop_cookie(response, origin)
        return response

    async def _checked(self, ask: SignInRequest, origin: Origin, request_id: str) -> Found:
        """The credential; None: a link. Failures are counted by account and by address."""
        account = _account(ask)
        keys = [f"address:{origin.address}"] + ([f"account:{account}"] if account else [])
        if (seconds := self.limit.wait(*keys)) > 0:
            raise Problem(
                429,
                "too_many_tries",
                f"Too many failures: try again in {int(seconds) + 1} s.",
                headers={"Retry-After": str(int(seconds) + 1)},
            )
        self.limit.failed(*keys)  # before the check, which takes a while: others may try meanwhile
        is_good, found = await self._find(ask, origin)
        if not is_good:
            await self._told("session.login", account or "somebody", None, "refused", origin, request_id)
            raise unauthorised("This token, password or link is not good.")
        self.limit.took_back(keys[0])
        self.limit.worked(*keys[1:])  # one good password must not buy guesses at others
        return found

    async def _find(self, ask: SignInRequest, origin: Origin) -> tuple[bool, Found]:
        store = await self._rota.stores.get()
        found: Found = None
        if ask.token is not None:
            found = await access.by_token(store, self._rota.clock, ask.token.strip())
        elif ask.user is not None and ask.password is not None:
            found = await access.by_password(store, ask.user, ask.password)
        elif ask.once is not None:
            return origin.is_local and self.codes.take(ask.once), None
        else:
            raise Problem(422, "bad_input", "give a token, or user and password, or once", field="token")
        return found is not None, found

    async def _view(self, caller: AuthenticatedCaller | None) -> SessionView:
        has_users = bool(await (await self._rota.stores.get()).find(access.USER))
        if caller is None:
            return SessionView(me=None, passwords=has_users)
        session: Session | None = caller.session
        return SessionView(
            me=await self._rota.operations(caller.actor).system.me(),
            csrf=None if session is None else session.csrf,
            ends_at=None if session is None else session.created_at + LONGEST,
            passwords=has_users,
        )

    async def _told(
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


def _account(ask: SignInRequest) -> str | None:
    """What can be said of who tries to come in; never a secret."""
    if ask.user is not None:
        return f"user:{ask.user[:200]}"
    if ask.token is not None and len(parts := ask.token.strip().split("_", 2)) == 3:
        return f"token:{parts[1][:20]}"
    return None
