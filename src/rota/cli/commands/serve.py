"""``rota serve``: the admin API and the dashboard, without a worker."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import click

from ...app import Rota
from ...runtime.service import StopSignals
from ..parts import logs, server_options
from ..parts.target import Target, pass_target, store_options

if TYPE_CHECKING:
    from ...admin.server import Listen

log = logging.getLogger("rota.serve")


@click.command()
@server_options.listen_options
@logs.log_options
@store_options
@pass_target
def serve(
    target: Target, /, log_level: str | None, log_format: logs.Format | None, print_link: bool, **given: Any
) -> None:
    """Serve the admin API and the dashboard until TERM or Ctrl-C.

    If there is no token and no user yet, the first start on a terminal prints an admin token for a day.
    """
    app, _, _ = logs.set_up_for(target, log_level, log_format)
    listen = server_options.listen_at(app, given)
    server_options.run(_serve(app, listen, print_link))


async def _serve(app: Rota, listen: Listen, print_link: bool) -> None:
    stop, forced = asyncio.Event(), asyncio.Event()
    try:
        with StopSignals(stop.set, forced.set, first="finishing open requests", second="closing them now"):
            async with server_options.served(
                app, listen, link=server_options.wants_link(print_link)
            ) as server:
                await stop.wait()
                forcing = asyncio.create_task(_force(forced, server.force))
            forcing.cancel()
    finally:
        await app.close()
        log.info("store closed")


async def _force(forced: asyncio.Event, force: Any) -> None:
    await forced.wait()
    force()
