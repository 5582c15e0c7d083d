"""``rota worker``: run jobs, in this process or in several."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import click

from ... import config
from ...app import Rota
from ...core.plurals import plural
from ...errors import ConfigError
from ...runtime import systemd
from ...runtime.events import Event, Hooks
from ...runtime.service import watchdog
from ...runtime.service_records import ServiceRecords
from ...terminal.text import safe
from ...worker.options import WorkerOptions, worker_options
from ..parts import logs, supervisor
from ..parts.exit_codes import RECYCLED
from ..parts.options import given_options
from ..parts.target import Target, pass_target, store_options
from ..parts.worker_options import exit_code, reload_option, run_options
from ..parts.worker_probes import add_probes


@click.command()
@run_options
@click.option("--processes", type=click.IntRange(1, 256), default=1, show_default=True,
              help="Number of worker processes.")  # fmt: skip
@click.option("--health-port", type=click.IntRange(1, 65535), metavar="PORT",
              help="Answer GET /healthz and /readyz on this port, for probes.")  # fmt: skip
@click.option("--burst", is_flag=True, help="Stop when nothing is due.")
@click.option("--max-jobs", type=click.IntRange(1),
              help="Stop after this many jobs; with --processes, a new process takes over.")  # fmt: skip
@reload_option
@logs.log_options
@store_options
@pass_target
def worker(
    target: Target,
    /,
    processes: int,
    reload: bool,
    health_port: int | None,
    no_scheduler: bool,
    log_level: str | None,
    log_format: logs.Format | None,
    **given: Any,
) -> None:
    """Run jobs from --app until TERM or Ctrl-C.

    The first signal lets running jobs finish; a second one releases them.
    """
    if target.app is None:
        raise ConfigError("a worker needs the tasks of an app: pass --app MODULE:APP, or set ROTA_APP")
    app, level, form = logs.set_up_for(target, log_level, log_format)
    options = given_options(given)
    chosen = _checked(app, options)
    if form == "text" and not supervisor.is_supervised():
        click.echo(_banner(app, options, processes), err=True)
    if reload:
        raise SystemExit(supervisor.reload(chosen.shutdown_timeout_s))
    if processes > 1:
        if health_port is not None:
            raise ConfigError(
                "--health-port answers for one worker: leave out --processes, or start one per container"
            )
        flags = {**options, "import": target.imports, "no_scheduler": no_scheduler}
        flags |= {"log_level": level, "log_format": form}
        raise SystemExit(supervisor.run(processes, flags, target.app, target.url, chosen.shutdown_timeout_s))
    if no_scheduler:
        app.runtime.settings = config.replaced(app.settings, scheduler_enabled=False)
    if health_port is not None:
        add_probes(health_port, app.hooks, app.runtime.records, app.clock.now)
    raise SystemExit(_work(app, options))


def _checked(app: Rota, options: Mapping[str, Any]) -> WorkerOptions:
    """What the worker will do; errors are reported before anything starts."""
    chosen = worker_options(app.settings, options)
    if not app.registry.names:
        raise ConfigError(
            "the app has no tasks: name the modules that declare them, with --import or imports in rota.toml"
        )
    return chosen


def _work(app: Rota, options: Mapping[str, Any]) -> int:
    if systemd.is_wanted():
        _notify_systemd(app.hooks, app.runtime.records)
    supervised = supervisor.is_supervised()
    with supervisor.watching_parent():
        worker = app.run(**options)
    code = exit_code(worker)
    return RECYCLED if supervised and code == 0 and worker.turns.reached_max_jobs else code


def _notify_systemd(hooks: Hooks, records: ServiceRecords) -> None:
    """Ready once the worker has started; then a watchdog ping while its loop runs and no service is stuck."""
    stop = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def started(event: Event) -> None:
        systemd.ready(f"worker {event.worker} is running")
        tasks.append(asyncio.create_task(watchdog(stop, records.stuck), name="rota-watchdog"))

    async def stopped(event: Event) -> None:
        stop.set()
        await asyncio.gather(*tasks)

    hooks.add("worker.started", started)
    hooks.add("worker.stopped", stopped)


def _banner(app: Rota, options: Mapping[str, Any], processes: int) -> str:
    known = app.registry.names
    resolved = worker_options(app.settings, options)
    queues = ", ".join(resolved.queues) if resolved.queues else "all"
    if resolved.exclude_queues:
        queues += f" except {', '.join(resolved.exclude_queues)}"
    shown = ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
    at_once = f"{plural(resolved.concurrency, 'job')} at once"
    lines = [
        f"rota worker, pid {os.getpid()}",
        f"  store     {app.stores.root().url}",
        f"  tasks     {shown}",
        f"  queues    {queues}",
        f"  runs      {at_once}" + (f" in each of {processes} processes" if processes > 1 else ""),
        "  stop      Ctrl-C or TERM lets running jobs finish; a second one releases them",
    ]
    return "\n".join(map(safe, lines))
