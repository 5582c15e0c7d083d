"""``rota up``: worker, scheduler, API and dashboard by one command; the API in a process of its own."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import click

from ... import config
from ...app import Rota
from ...errors import ConfigError
from ...runtime.service import StopSignals
from ...worker.options import worker_options
from ...worker.worker import Worker
from ..parts import logs, server_options, supervisor
from ..parts.options import given_options
from ..parts.target import Target, pass_target, store_options
from ..parts.worker_options import exit_code, reload_option, run_options

if TYPE_CHECKING:
    from ...admin.api_process import ApiProgram
    from ...admin.server import Listen

log = logging.getLogger("rota.up")


@click.command()
@run_options
@reload_option
@server_options.listen_options
@logs.log_options
@store_options
@pass_target
def up(
    target: Target,
    /,
    no_scheduler: bool,
    reload: bool,
    log_level: str | None,
    log_format: logs.Format | None,
    print_link: bool,
    **given: Any,
) -> None:
    """Run jobs from --app and serve the dashboard and API until TERM or Ctrl-C."""
    if target.app is None:
        raise ConfigError("rota up runs the tasks of an app: pass --app MODULE:APP, or use rota serve")
    app, level, form = logs.set_up_for(target, log_level, log_format)
    listen = server_options.listen_at(app, given)
    options = given_options(given)
    chosen = worker_options(app.settings, options)
    if reload:
        raise SystemExit(supervisor.reload(chosen.shutdown_timeout_s))
    if no_scheduler:
        app.runtime.settings = config.replaced(app.settings, scheduler_enabled=False)
    program = server_options.api_program(target.app, target, level, form)
    with supervisor.watching_parent():
        worker = server_options.run(
            _up(app, listen, options, program, link=server_options.wants_link(print_link))
        )
    raise SystemExit(exit_code(worker))


async def _up(
    app: Rota, listen: Listen, options: dict[str, Any], program: ApiProgram, *, link: bool
) -> Worker:
    """Stops in this order: scheduler, claims, running jobs, API, store."""
    try:
        serving = server_options.served_best(app, program, listen, link=link)  # a port in use ends it here
        async with app.worker(**options) as worker, serving as server:

            def force() -> None:
                worker.force()
                server.force()

            with StopSignals(worker.drain, force):
                await worker.run()
        return worker
    finally:
        await app.close()
        log.info("store closed")
