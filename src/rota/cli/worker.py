"""``rota worker``: run jobs, in this process or in several."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from typing import Any

import click

from .. import config
from ..app import Rota
from ..errors import ConfigError
from ..runtime import systemd
from ..runtime.events import Event, Hooks
from ..runtime.service import watchdog
from ..worker.options import worker_options
from . import logs, supervisor
from .failures import FAILED
from .target import Target, import_option, pass_target, target_options
from .text import plural, safe


def names(ctx: click.Context, param: click.Parameter, values: Iterable[str]) -> tuple[str, ...]:
    """``-q a,b -q c`` becomes (a, b, c)."""
    found = [name.strip() for value in values for name in value.split(",")]
    if not all(found):
        raise click.BadParameter("has an empty name: write mail,default", ctx, param)
    return tuple(dict.fromkeys(found))


@click.command()
@click.option("-q", "--queues", multiple=True, callback=names, help="Only these, by commas.  [default: all]")
@click.option("--exclude-queues", multiple=True, callback=names, help="All but these.")
@click.option(
    "-c", "--concurrency", type=click.IntRange(1, 4096), help="Jobs at once, per process.  [default: 32]"
)
@click.option(
    "--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="Worker processes."
)
@click.option("--burst", is_flag=True, help="Stop when nothing is due.")
@click.option("--max-jobs", type=click.IntRange(1), help="Stop after so many jobs, per process.")
@click.option("--shutdown-timeout", type=click.FloatRange(0), metavar="S",
              help="How long running jobs may take to end once asked to stop.  [default: 30]")  # fmt: skip
@click.option("--no-scheduler", is_flag=True, help="Do not fire schedules here.")
@click.option("-n", "--name", help="How this worker is listed.  [default: the host's name]")
@logs.log_options
@import_option
@target_options
@pass_target
def worker(
    target: Target,
    /,
    processes: int,
    no_scheduler: bool,
    log_level: str | None,
    log_format: logs.Format | None,
    **given: Any,
) -> None:
    """Run the jobs of --app until TERM or Ctrl-C, then finish what runs. A second signal hands it back."""
    if target.app is None:
        raise ConfigError("a worker needs the tasks of an app: give --app MODULE:APP, or set ROTA_APP")
    app, level, form = logs.set_up_for(target, log_level, log_format)
    options = {name: value for name, value in given.items() if value not in (None, (), False)}
    _check(app, options)
    if form == "text" and not supervisor.is_supervised():
        click.echo(_banner(app, options, processes), err=True)
    if processes > 1:
        flags = {
            **options,
            "import": target.imports,
            "no_scheduler": no_scheduler,
            "log_level": level,
            "log_format": form,
        }
        raise SystemExit(supervisor.run(processes, flags, target.app, target.url))
    if no_scheduler:
        app.runtime.settings = config.replaced(app.settings, scheduler_enabled=False)
    raise SystemExit(_work(app, options))


def _check(app: Rota, options: Mapping[str, Any]) -> None:
    """What can be wrong is said before anything starts."""
    worker_options(app.settings, options)
    if not app.registry.names:
        raise ConfigError(
            "the app has no tasks: name the modules that declare them, with --import or imports in rota.toml"
        )


def _work(app: Rota, options: Mapping[str, Any]) -> int:
    if systemd.is_wanted():
        _tell_systemd(app.hooks)
    with supervisor.watching_parent():
        worker = app.run(**options)
    if worker.released:
        click.echo(f"rota: {plural(worker.released, 'running job')} handed back unfinished", err=True)
    return FAILED if worker.was_forced else 0


def _tell_systemd(hooks: Hooks) -> None:
    """Ready once the worker has started; alive for as long as its loop goes round."""
    stop = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def started(event: Event) -> None:
        systemd.ready(f"worker {event.worker} is running")
        tasks.append(asyncio.create_task(watchdog(stop), name="rota-watchdog"))

    async def stopped(event: Event) -> None:
        stop.set()
        await asyncio.gather(*tasks)

    hooks.add("worker.started", started)
    hooks.add("worker.stopped", stopped)


def _banner(app: Rota, options: Mapping[str, Any], processes: int) -> str:
    known = app.registry.names
    chosen = worker_options(app.settings, options)
    queues = ", ".join(chosen.queues) if chosen.queues else "all"
    if chosen.exclude_queues:
        queues += f" but {', '.join(chosen.exclude_queues)}"
    shown = ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
    at_once = f"{plural(chosen.concurrency, 'job')} at once"
    lines = [
        f"rota worker, pid {os.getpid()}",
        f"  store     {app.stores.root().url}",
        f"  tasks     {shown}",
        f"  queues    {queues}",
        f"  runs      {at_once}" + (f" in each of {processes} processes" if processes > 1 else ""),
        "  stop      Ctrl-C or TERM finishes what runs; once more hands it back at once",
    ]
    return "\n".join(map(safe, lines))
