"""Sync programs as people run them: Flask, Django under WSGI, gunicorn, gevent, a notebook's loop."""

from __future__ import annotations

import ast
import asyncio
import json
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from flask import Flask

from rota import Rota, SyncCallWarning
from servers import free_port

COUNT = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = '{}' AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


def assert_connections(server: Any, url: str, most: int) -> None:
    """A connection that was closed takes a moment to go."""
    deadline = time.monotonic() + 30
    while (found := server.execute(COUNT.format(url.rpartition("/")[2]))[0][0]) > most:
        assert time.monotonic() < deadline, f"{found} connections are open"
        time.sleep(0.01)


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


def test_async_and_sync_views_of_flask_leave_no_connections(
    migrated_postgres_url: str, postgres_server: Any
) -> None:
    app, site = Rota(migrated_postgres_url), Flask("shop")

    @site.post("/orders")
    async def order() -> dict[str, str]:
        return {"job": (await app.enqueue("work")).id}

    @site.get("/jobs/<job_id>")
    async def status(job_id: str) -> dict[str, str]:
        return {"state": (await app.job(job_id)).state}

    @site.delete("/jobs/<job_id>")
    def cancel(job_id: str) -> dict[str, str]:
        app.cancel_sync(job_id, "by the customer")
        return {"state": app.job_sync(job_id).state}

    def use(_: int) -> tuple[str, str]:
        client = site.test_client()
        job = client.post("/orders").get_json()["job"]
        before = client.get(f"/jobs/{job}").get_json()["state"]
        return before, client.delete(f"/jobs/{job}").get_json()["state"]

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(use, range(30))) == {("queued", "cancelled")}
    app.close_sync()
    assert_connections(postgres_server, migrated_postgres_url, 0)


DJANGO = """
    import asyncio, sys
    from asgiref.sync import async_to_sync
    import django
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import JsonResponse
    from django.test import Client
    from django.urls import path
    from rota import Rota

    settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="-", USE_TZ=True)
    app = Rota(sys.argv[1])

    async def order(request):
        return JsonResponse({"job": (await app.enqueue("work")).id})

    def cancel(request, job):
        return JsonResponse({"state": async_to_sync(app.cancel)(job).state, "then": app.job_sync(job).state})

    urlpatterns = [path("order", order), path("cancel/<job>", cancel)]
    get_wsgi_application()
    client, seen = Client(), set()
    for _ in range(30):
        job = client.get("/order").json()["job"]
        seen.update(client.get(f"/cancel/{job}").json().items())
    assert seen == {("state", "cancelled"), ("then", "cancelled")}, seen

    async def count():
        store = await app.stores.get()
        return (await store._connections.rows(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE application_name = 'rota' AND datname = current_database()"
        ))[0][0]

    print(asyncio.run(count()))
"""


def test_async_views_of_django_under_wsgi_leave_no_connections(migrated_postgres_url: str) -> None:
    assert (
        int(run(DJANGO, migrated_postgres_url)) <= 3
    )  # of sync calls, of this count, and one that is leaving


GEVENT = """
    from gevent import monkey
    monkey.patch_all()
    import asyncio, sys
    import gevent
    from rota import Rota

    app, ticks = Rota(sys.argv[1]), 0

    def tick():
        global ticks
        while True:
            gevent.sleep(0.001)
            ticks += 1

    def use(n):
        job = app.enqueue_sync("work", {"n": n})
        return app.job_sync(job.id).state

    assert app.enqueue_sync("work").state == "queued"  # with nothing else to do
    gevent.spawn(tick)
    states = {one.get(timeout=60) for one in [gevent.spawn(use, n) for n in range(100)]}
    before, waited = ticks, False
    try:
        app.enqueue_sync("work").result_sync(timeout=0.3)
    except TimeoutError:
        waited = True

    async def plain():
        return (await app.stats())["queued"]

    print(*states, waited, ticks - before > 10, asyncio.run(plain()))
    app.close_sync()
"""


def test_greenlets_share_the_sync_api_and_run_while_one_of_them_waits(store_url: str) -> None:
    assert run(GEVENT, store_url) == "queued True True 102"


WSGI = """
import json, os, sys
from rota import Rota
app = Rota(os.environ["SHOP_URL"])
before = app.enqueue_sync("before").id  # with --preload: in the parent, whose portal the children do not have

def shop(environ, start_response):
    job = app.enqueue_sync("work")
    found = [app.job_sync(job.id).task, app.job_sync(before).task, os.getpid()]
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(found).encode()]
"""


@contextmanager
def gunicorn(folder: Path, url: str, *options: str) -> Iterator[str]:
    (folder / "shop.py").write_text(WSGI)
    address = f"127.0.0.1:{free_port()}"
    command = f"{sys.executable} -m gunicorn shop:shop --bind {address} --preload --workers 2"
    with (folder / "log").open("w+") as log:
        server = subprocess.Popen(
            [*command.split(), "--no-control-socket", *options],
            cwd=folder,
            env={"SHOP_URL": url},
            stdout=log,
            stderr=log,
        )
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    urlopen(f"http://{address}/", timeout=30).close()
                    break
                except URLError as error:
                    log.seek(0)
                    assert server.poll() is None and time.monotonic() < deadline, (error, log.read())
                    time.sleep(0.05)
            yield f"http://{address}/"
        except Exception as error:
            log.seek(0)
            raise AssertionError(log.read()) from error
        finally:
            server.terminate()
            server.wait(60)  # longer than gunicorn itself waits for its workers


@pytest.mark.parametrize("worker", ["sync", "gthread", "gevent"])
def test_the_workers_of_a_preloaded_gunicorn_enqueue_and_read(
    worker: str, tmp_path: Path, migrated_postgres_url: str
) -> None:
    options = ("--worker-class", worker, *(("--threads", "4") if worker == "gthread" else ()))
    with gunicorn(tmp_path, migrated_postgres_url, *options) as address, ThreadPoolExecutor(8) as pool:

        def ask(_: int) -> list[Any]:
            with urlopen(address, timeout=60) as response:
                found: list[Any] = json.load(response)
                return found

        answers = list(pool.map(ask, range(40)))
    assert {tuple(answer[:2]) for answer in answers} == {("work", "before")}


def test_a_cell_of_a_notebook_may_use_either_api_without_a_warning(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    cell = """
        from rota import Rota
        app = Rota(url)

        @app.task
        def double(n: int) -> int:
            return n * 2

        with app.running_sync():
            job = double.enqueue_sync(n=2)
            sync = job.result_sync(timeout=30)
            there = (await app.job(job.id)).output
        app.close_sync()
        await app.close()
    """
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(textwrap.dedent(cell), "<cell>", "exec", flags=flags, dont_inherit=True)
    space: dict[str, Any] = {"url": store_url, "__name__": "__main__"}

    async def kernel() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyncCallWarning)
            await eval(code, space)

    asyncio.run(kernel())
    assert (space["sync"], space["there"]) == (4, 4)
