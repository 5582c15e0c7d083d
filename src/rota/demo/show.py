"""Runs the demo: worker, feed and console in one event loop, until a time limit or a signal."""

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
from .feed import feed, set_rules

APP = "rota.demo.tasks:app"
SUMMARY_S = 3.0
DECLARED_S = 0.2  # poll interval while waiting for the worker to declare the schedules
SHUTDOWN_S = 10.0


async def show(app: Rota, *, seconds: float | None, quiet: bool, api_module: str, link: bool = False) -> bool:
    """Returns False if a second signal released running jobs, else True."""
    await app.migrate()
    await set_rules(app)
    store = await app.stores.get()
    console = DemoConsole(app, quiet=quiet)
    console.listen()
    try:
        async with _served(app, link, api_module) as entries:
            click.echo(header(store.url, entries))
            await _run(app, console, seconds)
        click.echo(closing(console.counts, store.url, is_kept=store.capabilities.shared))
    finally:
        await app.close()
    return not console.counts["released"]


@asynccontextmanager
async def _served(app: Rota, link: bool, api_module: str) -> AsyncIterator[list[tuple[str, str]]]:
    """Serve the dashboard and API on a free port, by another process; yields the lines for the header."""
    try:
        from ..admin.server import Listen, PortInUse, Server, bind
    except ImportError:
        yield [("dashboard", "pip install 'rota[server]', then run rota demo again")]
        return
    from ..admin.api_process import ApiProgram, api_beside, is_possible
    from ..admin.first_token import first_token

    host = app.settings.admin_host
    try:
        listening = bind(host, app.settings.admin_port)
    except PortInUse:
        listening = bind(host, 0)
    listen = Listen(host=host)
    if is_possible(app):
        program = ApiProgram(module=api_module, app=APP, log_level="error", log_format="text")
        async with api_beside(app, program, listen, listening, link=link, token=link) as (_, ready):
            entries = [("dashboard", ready.link or ready.url)]
            if ready.token is not None:
                entries.append(("sign in with", ready.token))
            yield entries
        return
    server = Server(app, listen, listening)
    await server.start()
    try:
        entries = [("dashboard", server.link() if link else server.url)]
        if link and (token := await first_token(app)) is not None:
            entries.append(("sign in with", token))
        yield entries
    finally:
        await server.stop()


async def _run(app: Rota, console: DemoConsole, seconds: float | None) -> None:
    """Run the worker, and handle signals until the last job has finished."""
    stop, forced = asyncio.Event(), asyncio.Event()
    with StopSignals(stop.set, forced.set):
        async with app.running(concurrency=8, shutdown_timeout=SHUTDOWN_S, name="demo") as worker:
            forcing = asyncio.create_task(_force(worker, forced))
            await _until(app, console, stop, seconds)
            click.echo("Stopping: waiting for running jobs …")
    forcing.cancel()


async def _force(worker: Worker, forced: asyncio.Event) -> None:
    await forced.wait()
    worker.force()


async def _until(app: Rota, console: DemoConsole, stop: asyncio.Event, seconds: float | None) -> None:
    """Feed and summarise until a signal, or until the time is up."""
    parts = (feed(stop, console.enqueued), _print_schedules(app, console, stop), _summarise(app, stop))
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await stop.wait()
    finally:
        stop.set()
        await asyncio.gather(*tasks)


async def _print_schedules(app: Rota, console: DemoConsole, stop: asyncio.Event) -> None:
    """Print the schedules once they are declared."""
    while not await pause(DECLARED_S, stop):
        with suppress(StoreError):
            schedules = (await app.schedules.list()).items
            for schedule in schedules:
                console.planned(schedule)
            if schedules:
                return


async def _summarise(app: Rota, stop: asyncio.Event) -> None:
    while not await pause(SUMMARY_S, stop):
        with suppress(StoreError):  # the worker logs it and reconnects
            running: list[Job] = list((await app.jobs(state="running", limit=8)).items)
            click.echo(summary(await app.stats(), running))
