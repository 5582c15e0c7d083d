"""A real server in a thread of its own, and a small client for it."""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from rota import Rota
from rota.admin.server import Listen, Server
from rota.model import Actor, Role
from rota.operate import Operations
from rota.operate.requests import CreateTokenRequest, EnqueueRequest, PutUserRequest
from rota.runtime.clock import Clock

T = TypeVar("T")
DEADLINE_S = 60.0
ADMIN = Actor(name="tests", role="admin", payloads=True)
API = "/api/admin"
PASSWORD = "correct horse battery"


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def code(self) -> str:
        return str(self.json["code"])


class Site:
    """Serves one app until closed. ``do`` runs something on the server's own loop."""

    def __init__(
        self, url: str, clock: Clock | None = None, listen: Listen | None = None, **settings: Any
    ) -> None:
        self.rota = Rota(url, clock=clock, **settings)
        self.server: Server
        self.loop: asyncio.AbstractEventLoop
        self._listen = listen or Listen(port=0)
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="site", daemon=True)
        self._thread.start()
        assert self._ready.wait(DEADLINE_S)
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self.loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            await self.rota.migrate()
            self.server = Server(self.rota, self._listen)
            await self.server.start()
            self._ready.set()
            await self._stop.wait()
            await self.server.stop()
        finally:
            await self.rota.close()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the server did not stop"
        assert self._failure is None, self._failure

    def do(self, act: Callable[[], Awaitable[T]]) -> T:
        async def go() -> T:
            return await act()

        return asyncio.run_coroutine_threadsafe(go(), self.loop).result(DEADLINE_S)

    def operations(self, actor: Actor = ADMIN) -> Operations:
        return self.rota.operations(actor)

    def token(
        self,
        role: Role = "admin",
        tenant: str | None = None,
        expires_s: float | None = None,
        payloads: bool | None = None,
    ) -> str:
        ask = CreateTokenRequest(
            role=role, tenant=tenant, expires_s=expires_s, payloads=payloads, name=f"{role} of {tenant}"
        )
        return self.do(lambda: self.operations().access.create_token(ask)).token

    def user(self, name: str, password: str, role: Role = "admin") -> None:
        self.do(lambda: self.operations().access.put_user(name, PutUserRequest(password=password, role=role)))

    def job(self, task: str = "work", **given: Any) -> str:
        return self.do(lambda: self.operations().jobs.enqueue(EnqueueRequest(task=task, **given))).id

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.server.url)
        assert parts.hostname is not None and parts.port is not None
        return parts.hostname, parts.port

    @property
    def host(self) -> str:
        return "{}:{}".format(*self.address)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self.address, timeout=DEADLINE_S)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        sent = dict(headers or {})
        data = raw
        if body is not None:
            data = msgspec.json.encode(body)
            sent.setdefault("Content-Type", "application/json")
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        connection = self.connect()
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path: str, token: str | None = None, **given: Any) -> Answer:
        return self.ask("GET", path, token=token, **given)

    def post(self, path: str, body: Any = None, token: str | None = None, **given: Any) -> Answer:
        return self.ask("POST", path, body, token=token, **given)


Sites = Callable[..., Site]  # what starts one


class Browser:
    """Keeps a cookie and the CSRF token, as the dashboard does."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.cookie = ""
        self.csrf = ""

    def sign_in(self, headers: Mapping[str, str] | None = None, **said: str) -> Answer:
        answer = self.site.post("/api/session", said, headers=headers)
        if answer.status == 200:
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
            self.csrf = answer.json["csrf"]
        return answer

    def ask(self, method: str, path: str, body: Any = None, **over: str | None) -> Answer:
        usual = {
            "Cookie": self.cookie,
            "X-CSRF-Token": self.csrf,
            "Origin": self.site.server.url,
            "Sec-Fetch-Site": "same-origin",
        }
        changed = {**usual, **{name.replace("_", "-"): value for name, value in over.items()}}
        headers = {name: value for name, value in changed.items() if value is not None}
        return self.site.ask(method, path, body, headers=headers)


def signed_in(site: Site, **credentials: str) -> Browser:
    browser = Browser(site)
    assert browser.sign_in(**(credentials or {"token": site.token()})).status == 200
    return browser


def audited(site: Site, action: str) -> list[Any]:
    items: list[Any] = site.get(f"{API}/audit?action={action}", site.token()).json["items"]
    return items


def eventually(what: Callable[[], T], why: str, within: float = DEADLINE_S) -> T:
    """Poll until it holds; fail at a deadline with the reason."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError(f"never came true within {within:g} s: {why}")
