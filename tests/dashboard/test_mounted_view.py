"""The dashboard inside another application, under a path."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from admin.sites import DEADLINE_S, eventually
from rota import Rota, admin
from rota.admin.first_token import first_token

expect = pytest.importorskip("playwright.sync_api").expect


@contextmanager
def hosted(app: Any) -> Iterator[str]:
    """The address of a server that hosts the app."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    eventually(lambda: server.started, "the server starts")
    try:
        yield "http://{}:{}".format(*server.servers[0].sockets[0].getsockname()[:2])
    finally:
        server.should_exit = True
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def test_dashboard_works_under_a_path_on_any_page(browser: Any, tmp_path: Path) -> None:
    rota = Rota(f"sqlite:///{tmp_path / 'rota.db'}")

    async def make() -> str:
        token = await first_token(rota)
        await rota.enqueue("bake", {"order": 7})
        await rota.close()
        return str(token)

    with ThreadPoolExecutor() as aside:  # the browser has a loop of its own in this thread
        token = aside.submit(asyncio.run, make()).result(DEADLINE_S)
    app = Starlette(routes=[Mount("/ops/rota", app=admin.app(rota))])
    problems: list[str] = []
    with hosted(app) as address, closing(browser.new_context()) as context:
        page = context.new_page()
        page.on("console", lambda values: values.type == "error" and problems.append(values.text))
        page.goto(f"{address}/ops/rota/jobs?state=queued")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="bake").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("bake")
        page.reload()
        expect(page.get_by_role("group", name="Payload")).to_contain_text("7")
        page.get_by_role("link", name="Overview", exact=True).click()
        expect(page).to_have_url(f"{address}/ops/rota/")
    assert problems == []
