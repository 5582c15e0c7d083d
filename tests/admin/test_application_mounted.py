"""The application inside another one, under any prefix."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvicorn
from sites import DEADLINE_S, eventually
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from rota import Rota, admin
from rota.admin.first_token import first_token


@contextmanager
def hosted(app: Any, **given: Any) -> Iterator[tuple[str, int]]:
    """Another server around another application."""
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="auto", **given)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    eventually(lambda: server.started, "the server starts")
    try:
        yield server.servers[0].sockets[0].getsockname()[:2]
    finally:
        server.should_exit = True
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def fetch(address: tuple[str, int], path: str, token: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*address, timeout=DEADLINE_S)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


@pytest.fixture
def rota(tmp_path: Path) -> Rota:
    return Rota(f"sqlite:///{tmp_path / 'rota.db'}")


@pytest.fixture
def token(rota: Rota) -> str:
    async def make() -> str:
        try:
            return str(await first_token(rota))
        finally:
            await rota.close()

    return asyncio.run(make())


@pytest.mark.parametrize(
    ("mount", "prefix", "root_path"),
    [("/ops/rota", "", ""), ("", "/ops/rota", ""), ("/ops", "/rota/", ""), ("/rota", "", "/ops")],
)
def test_application_works_under_any_prefix(
    rota: Rota, token: str, mount: str, prefix: str, root_path: str
) -> None:
    async def hello(request: Any) -> PlainTextResponse:
        return PlainTextResponse("hello")

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        await rota.close()  # the mounting app opened it

    mounted = admin.app(rota, prefix=prefix)
    app = Starlette(routes=[Route("/hello", hello), Mount(mount, app=mounted)], lifespan=life)
    with hosted(app, root_path=root_path) as address:
        inside = "/rota" if root_path else "/ops/rota"
        assert fetch(address, "/hello") == (200, b"hello")
        status, body = fetch(address, f"{inside}/api/admin/jobs", token)
        assert (status, msgspec.json.decode(body)["items"]) == (200, [])
        assert fetch(address, f"{inside}/api/admin/jobs")[0] == 401
        assert fetch(address, f"{inside}/healthz")[0] == 200
        assert fetch(address, f"{inside}/nothing.js")[0] == 404
        page = fetch(address, f"{inside}/jobs/1")[1]
        assert b'<meta name="rota-base" content="/ops/rota">' in page
        told = msgspec.json.decode(fetch(address, f"{inside}/api/openapi.json", token)[1])
        assert told["servers"] == [{"url": "/ops/rota"}]


def test_base_path_cannot_break_out_of_its_attribute(rota: Rota) -> None:
    with hosted(admin.app(rota), root_path='//evil.test/"><script>') as address:
        page = fetch(address, "/")[1]
        assert b'content="/evil.test/&quot;&gt;&lt;script&gt;"' in page


def test_importing_routes_needs_no_web_framework(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "import sys, rota.admin.routes; sys.exit(any(n in sys.modules for n in ('starlette', 'uvicorn')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0
