"""Runs the demo: worker, feed and telling in one event loop, until the time is up or a signal comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import click

from ..app import Rota
from ..errors import StoreError
from ..model import Job
from ..runtime.service import StopSignals, pause
from ..worker.worker import Worker
from .console import DemoConsole, closing, header, summary
from .feed import feed

SUMMARY_S = 3.0
DECLARED_S = 0.2  # between looks for the schedules that the worker is about to declare
SHUTDOWN_S = 10.0


async def show(app: Rota, *, seconds: float | None, quiet: bool, link: bool = False) -> bool:
    """True if all that ran was finished; False if it was handed back at a second signal."""
    await app.migrate()
    store = await app.stores.get()
    teller = DemoConsole(app, quiet=quiet)
    teller.listen()
    try:
        async with _served(app, link) as entries:
            click.echo(header(store.url, entries))
            await _run(app, teller, seconds)
        click.echo(closing(teller.counts, store.url, keeps=store.capabilities.shared))
    finally:
        await app.close()
    return not teller.counts["released"]


@asynccontextmanager
async def _served(app: Rota, link: bool) -> AsyncIterator[list[tuple[str, str]]]:
    """The admin interface beside the worker, on a free port; what to tell of it."""
    try:
        from ..admin.server import Listen, PortInUse, Server
    except ImportError:
        yield [("dashboard", "pip install 'rota[server]', then start again")]
        return
    from ..admin.first_token import first_token

    listen = Listen(host=app.settings.admin_host, port=app.settings.admin_port)
    try:
        server = Server(app, listen)
    except PortInUse:
        server = Server(app, Listen(host=app.settings.admin_host, port=0))
    await server.start()
    try:
        entries = [("dashboard", server.link() if link else server.url)]
        if (token := await first_token(app)) is not None:
            entries.append(("sign in with", token))
        yield entries
    finally:
        await server.stop()


async def _run(app: Rota, teller: DemoConsole, seconds: float | None) -> None:
    """Work, with signals heard until the last job has ended."""
    stop, forced = asyncio.Event(), asyncio.Event()
    with StopSignals(stop.set, forced.set):
        async with app.running(concurrency=8, shutdown_timeout=SHUTDOWN_S, name="demo") as worker:
            forcing = asyncio.create_task(_force(worker, forced))
            await _until(app, teller, stop, seconds)
            click.echo("Stopping: finishing what runs …")
    forcing.cancel()


async def _force(worker: Worker, forced: asyncio.Event) -> None:
    await forced.wait()
    worker.force()


async def _until(app: Rota, teller: DemoConsole, stop: asyncio.Event, seconds: float | None) -> None:
    """Feed and sum up until told to stop, or until the time is up."""
    parts = (feed(stop, teller.enqueued), _plan(app, teller, stop), _sum_up(app, stop))
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await stop.wait()
    finally:
        stop.set()
        await asyncio.gather(*tasks)


async def _plan(app: Rota, teller: DemoConsole, stop: asyncio.Event) -> None:
    """Tell the schedules once they are there."""
    while not await pause(DECLARED_S, stop):
        with suppress(StoreError):
            schedules = (await app.schedules.list()).items
            for schedule in schedules:
                teller.planned(schedule)
            if schedules:
                return


async def _sum_up(app: Rota, stop: asyncio.Event) -> None:
    while not await pause(SUMMARY_S, stop):
        with suppress(StoreError):  # the worker says so, and waits for the store to come back
            running: list[Job] = list((await app.jobs(state="running", limit=8)).items)
            click.echo(summary(await app.stats(), running))
