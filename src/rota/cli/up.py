"""``rota up``: worker, scheduler, API and dashboard in one process."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import click

from .. import config
from ..app import Rota
from ..errors import ConfigError
from ..runtime.service import StopSignals
from ..worker.options import worker_options
from ..worker.worker import Worker
from . import logs, serving
from .failures import FAILED
from .target import Target, import_option, pass_target, target_options
from .text import plural
from .worker import names

if TYPE_CHECKING:
    from ..admin.server import Listen

log = logging.getLogger("rota.up")


@click.command()
@click.option("-q", "--queues", multiple=True, callback=names, help="Only these, by commas.  [default: all]")
@click.option("--exclude-queues", multiple=True, callback=names, help="All but these.")
@click.option("-c", "--concurrency", type=click.IntRange(1, 4096), help="Jobs at once.  [default: 32]")
@click.option("--shutdown-timeout", type=click.FloatRange(0), metavar="S",
              help="How long running jobs may take to end once asked to stop.  [default: 30]")  # fmt: skip
@click.option("--no-scheduler", is_flag=True, help="Do not fire schedules here.")
@click.option("-n", "--name", help="How this worker is listed.  [default: the host's name]")
@serving.listen_options
@logs.log_options
@import_option
@target_options
@pass_target
def up(
    target: Target,
    /,
    no_scheduler: bool,
    log_level: str | None,
    log_format: logs.Format | None,
    print_link: bool,
    **given: Any,
) -> None:
    """Run the jobs of --app and serve the admin interface, until TERM or Ctrl-C."""
    if target.app is None:
        raise ConfigError("this runs the tasks of an app: give --app MODULE:APP, or use rota serve")
    app, _, _ = logs.set_up_for(target, log_level, log_format)
    listen = serving.listen_at(app, given)
    options = {name: value for name, value in given.items() if value not in (None, (), False)}
    worker_options(app.settings, options)
    if no_scheduler:
        app.runtime.settings = config.replaced(app.settings, scheduler_enabled=False)
    worker = serving.run(_up(app, listen, options, serving.wants_link(print_link)))
    if worker.released:
        click.echo(f"rota: {plural(worker.released, 'running job')} handed back unfinished", err=True)
    raise SystemExit(FAILED if worker.was_forced else 0)


async def _up(app: Rota, listen: Listen, options: dict[str, Any], link: bool) -> Worker:
    """Stops in this order: scheduler, claims, running jobs, API, store."""
    try:
        async with app.worker(**options) as worker, serving.served(app, listen, link=link) as server:

            def force() -> None:
                worker.force()
                server.force()

            with StopSignals(worker.drain, force):
                await worker.run()
        return worker
    finally:
        await app.close()
        log.info("store closed")
