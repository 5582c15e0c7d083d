"""The ASGI application: its paths, and what surrounds every request.

Every response carries the security headers and a request id; every error is a problem document, and an
unexpected one shows no internal details.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections import Counter
from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from ..app import Rota
from ..runtime.clock import monotonic
from . import openapi, problems, prometheus
from .authentication import Authenticator
from .dispatch import Dispatch
from .events import Events
from .limits import RequestLimits, Ticket
from .probes import Probes
from .problems import Problem
from .requests import FULL, LOOPBACK_NAMES
from .routes import PREFIX
from .sign_in import SignIn
from .static import Pages, base_path

log = logging.getLogger("rota.http")

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
HSTS = "max-age=31536000"
PROBES = ("/healthz", "/readyz")  # accept any host name: probes use addresses
SANE_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
LONGEST_TARGET = 8 * 1024
PAGES_OF_NAMES = ("jobs", "queues", "tasks", "schedules", "workers", "tenants")
LONGEST_HEAD = 32 * 1024


class Admin:
    """The ASGI application of one Rota. ``links`` creates codes for signing in once, from this machine."""

    def __init__(
        self, rota: Rota, *, prefix: str = "", allowed_hosts: Sequence[str] = (), behind_proxy: bool = False
    ) -> None:
        self.rota = rota
        self.prefix = f"/{prefix.strip('/')}" if prefix.strip("/") else ""
        self.hosts = frozenset(host.lower().strip("[]") for host in allowed_hosts)
        self.authenticator = Authenticator(rota, tuple(self.hosts), behind_proxy)
        self.sign_in = SignIn(rota, self.authenticator)
        self.events = Events(rota, self.authenticator)
        self.dispatch = Dispatch(rota, self.authenticator)
        self.limits = RequestLimits(rota.clock, rota.settings)
        self.links = self.sign_in.codes
        self._requests: Counter[str] = Counter()
        self._pages = Pages("dashboard", self.prefix)
        self._docs = Pages("docs", self.prefix)
        self._router = Router(self._routes(), redirect_slashes=False)

    async def close(self) -> None:
        """End the streams, so that the server can stop."""
        self.dispatch.heavy.close()
        await self.events.feed.close()

    # --- paths -----------------------------------------------------------------------------------

    def _routes(self) -> list[Route]:
        probes = Probes(self.rota)
        sessions = {"GET": self.sign_in.show, "POST": self.sign_in.login, "DELETE": self.sign_in.logout}

        async def session(request: Request) -> Response:
            return await sessions["GET" if request.method == "HEAD" else request.method](request)

        routes = [
            Route(f"{PREFIX}/events", self.events.listen),
            *self.dispatch.paths(),
            Route("/api/session", session, methods=list(sessions)),
            Route("/api/openapi.json", self._openapi),
            Route("/api/docs", self._docs_page),
            Route("/api/docs/{path:path}", self._docs_page),
            Route("/healthz", probes.alive),
            Route("/readyz", probes.ready),
            Route("/metrics", self._metrics),
            Route("/api/{path:path}", self._not_found),
            Route("/{path:path}", self._page),
        ]
        return [
            Route(self.prefix + one.path, one.endpoint, methods=one.methods and list(one.methods))
            for one in routes
        ] + ([Route(self.prefix, self._page)] if self.prefix else [])

    async def _openapi(self, request: Request) -> Response:
        await self.authenticator.allow(await self.authenticator.authenticate(request), "read")
        return Response(openapi.encoded(base_path(request, self.prefix)), media_type="application/json")

    async def _metrics(self, request: Request) -> Response:
        caller = await self.authenticator.authenticate(request)
        await self.authenticator.allow(caller, "read.shared")
        text = await prometheus.render(
            self.rota.operations(caller.actor), self._requests, self.events.feed.listeners
        )
        return Response(text, media_type=prometheus.MEDIA_TYPE)

    async def _docs_page(self, request: Request) -> Response:
        found = self._docs.find(request, request.path_params.get("path") or "index.html")
        return found or await self._not_found(request)

    async def _page(self, request: Request) -> Response:
        """A file of the dashboard, or one of its pages."""
        path = request.path_params.get("path", "")
        found = self._pages.find(request, path)
        if found is None and _is_page(path):
            found = self._pages.find(request, "index.html")
        return found or await self._not_found(request)

    async def _not_found(self, request: Request) -> Response:
        raise Problem(404, "no_such_path", "Not found: /api/openapi.json lists all paths.")

    # --- around every request --------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http({**scope, "app": self, "state": {**scope.get("state", {})}}, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        given, started = request.headers.get("x-request-id", ""), monotonic()
        id = given if SANE_ID.fullmatch(given) else secrets.token_hex(8)
        scope["state"]["request_id"] = id
        scope["state"]["ticket"] = ticket = self.limits.ticket()
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(MutableHeaders(scope=message), request, id)
            await send(message)

        try:
            self._check_target(request)
            await self._admit(request, ticket)
            await self._router(scope, receive, sending)
        except Exception as error:
            problem = problems.of(error)
            if problem is None:
                log.exception("request %s: %s %s failed", id, request.method, scope["path"])
                problem = problems.unexpected()
            if status:  # half a response is sent: only closing the connection can signal the error
                raise
            await problem.response(id)(scope, receive, sending)
        finally:
            ticket.leave()
            self._requests[f"{status // 100}xx"] += 1
            log.debug("%s %s %s: %d in %.1f ms", id, request.method, scope["path"], status,
                      (monotonic() - started) * 1000)  # fmt: skip

    def _check_target(self, request: Request) -> None:
        """Bound the address and headers, and accept only known host names (DNS rebinding)."""
        path, query = request.scope["path"], request.scope["query_string"]
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            raise Problem(
                400,
                "ambiguous_length",
                "Content-Length and Transfer-Encoding exclude each other: send one of them.",
                headers={"Connection": "close"},
            )
        if len(path) + len(query) > LONGEST_TARGET:
            raise Problem(414, "too_long", f"The address is longer than {LONGEST_TARGET} characters.")
        if sum(len(name) + len(value) for name, value in request.scope["headers"]) > LONGEST_HEAD:
            raise Problem(431, "too_long", f"The headers are longer than {LONGEST_HEAD} characters.")
        name = self.authenticator.origin(request).name
        if name not in LOOPBACK_NAMES | self.hosts and not self._is_probe(request):
            raise Problem(
                421,
                "unknown_host",
                "Unknown host name: add it with --allowed-host, or app(allowed_hosts=…).",
            )

    def _is_probe(self, request: Request) -> bool:
        bases = (self.prefix, base_path(request, self.prefix))
        return request.scope["path"] in [base + probe for base in bases for probe in PROBES]

    async def _admit(self, request: Request, ticket: Ticket) -> None:
        """Refuse what exceeds the limits of its address; a probe is always answered."""
        if self._is_probe(request):
            return
        if request.scope["state"].get(FULL):
            raise Problem(503, "too_many_connections", "Too many connections are open: try again later.",
                          headers={"Retry-After": "5", "Connection": "close"})  # fmt: skip
        origin = self.authenticator.origin(request)
        if origin.is_known:
            await ticket.enter_address(origin.address)

    def _add_headers(self, headers: MutableHeaders, request: Request, id: str) -> None:
        for name, value in HEADERS.items():
            headers[name] = value
        headers["X-Request-Id"] = id
        headers.setdefault("Cache-Control", "no-store")
        if self.authenticator.origin(request).is_secure:
            headers["Strict-Transport-Security"] = HSTS

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})


def _is_page(path: str) -> bool:
    """A path without a dot, or below a page whose names may have dots; never one with ``..``."""
    if "\\" in path or "\0" in path or ".." in path.split("/"):
        return False
    return "." not in path or path.partition("/")[0] in PAGES_OF_NAMES
