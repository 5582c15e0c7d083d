"""What ``rota serve`` and ``rota up`` share: where to listen, and how to sign in."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...app import Rota
from ...errors import ConfigError
from ...runtime import systemd
from ...runtime.service import watchdog
from .options import apply_options, given_options

if TYPE_CHECKING:
    import socket

    from ...admin.api_process import ApiProcess, ApiProgram
    from ...admin.server import Listen, Server
    from .target import Target

T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--host", help="Address to listen on.  [default: admin_host, 127.0.0.1]"),
    click.option("--port", type=click.IntRange(0, 65_535),
                 help="Port to listen on; 0 picks a free one.  [default: admin_port, 8765]"),
    click.option("--behind-proxy", is_flag=True, help="Behind a TLS proxy: trust its X-Forwarded-* headers."),
    click.option("--allowed-host", "allowed_hosts", multiple=True, metavar="NAME",
                 help="Host name to accept (repeatable)."),
    click.option("--tls-cert", metavar="FILE", help="TLS certificate."),
    click.option("--tls-key", metavar="FILE", help="Private key of the TLS certificate."),
    click.option(
        "--print-link", is_flag=True,
        help="Print a one-time sign-in link, even if the output is not a terminal.",
    ),
)  # fmt: skip
API_PROGRAM = "rota.cli.parts.api_program"
LISTEN = ("host", "port", "behind_proxy", "allowed_hosts", "tls_cert", "tls_key")


def listen_options(command: C) -> C:
    """Give a command the options of the admin server."""
    return apply_options(command, _OPTIONS)


def listen_at(app: Rota, given: dict[str, Any]) -> Listen:
    """Where to listen: takes its own options out of ``given``. An unsafe combination is an error."""
    try:
        from ...admin.server import Listen
    except ImportError as error:
        raise ConfigError(
            f"the admin server needs {error.name}, which is not installed; run pip install 'rota[server]'"
        ) from error
    options = given_options({name: given.pop(name) for name in LISTEN})
    settings = app.settings
    defaults = {
        "host": settings.admin_host,
        "port": settings.admin_port,
        "behind_proxy": settings.behind_proxy,
        "allowed_hosts": settings.allowed_hosts,
        "tls_cert": settings.tls_cert,
        "tls_key": settings.tls_key,
    }
    listen = Listen(**{**defaults, **options})
    listen.check()
    return listen


@asynccontextmanager
async def served(app: Rota, listen: Listen, *, link: bool) -> AsyncIterator[Server]:
    """Serve while the block runs; print how to sign in, and notify systemd."""
    from ...admin.first_token import first_token, lacks_credentials
    from ...admin.server import serving

    stop = asyncio.Event()
    async with serving(app, listen) as server:
        token = await first_token(app) if on_terminal() else None
        print_sign_in(server.url, token, server.link() if link else None, await lacks_credentials(app))
        systemd.ready(f"serving {server.url}")
        watching = asyncio.create_task(watchdog(stop, app.runtime.records.stuck), name="rota-watchdog")
        try:
            yield server
        finally:
            stop.set()
            await watching


def api_program(app: str, target: Target, log_level: str, log_format: str) -> ApiProgram:
    """How another process loads the app of this command."""
    from ...admin.api_process import ApiProgram

    return ApiProgram(
        module=API_PROGRAM,
        app=app,
        imports=target.imports,
        url=target.url,
        log_level=log_level,
        log_format=log_format,
    )


def served_best(
    app: Rota, program: ApiProgram, listen: Listen, *, link: bool
) -> AbstractAsyncContextManager[Server | ApiProcess]:
    """By another process if it can be; PortInUse at once, before anything has started."""
    from ...admin.api_process import is_possible
    from ...admin.server import bind

    if not is_possible(app):
        return served(app, listen, link=link)
    return served_beside(app, program, listen, bind(listen.host, listen.port), link=link)


@asynccontextmanager
async def served_beside(
    app: Rota, program: ApiProgram, listen: Listen, listening: socket.socket, *, link: bool
) -> AsyncIterator[ApiProcess]:
    """``served`` by another process, so that requests and jobs cannot starve each other."""
    from ...admin.api_process import api_beside

    stop = asyncio.Event()
    beside = api_beside(app, program, listen, listening, link=link, token=on_terminal())
    async with beside as (process, ready):
        print_sign_in(ready.url, ready.token, ready.link, ready.lacks_credentials)
        systemd.ready(f"serving {ready.url}")
        watching = asyncio.create_task(watchdog(stop, app.runtime.records.stuck), name="rota-watchdog")
        try:
            yield process
        finally:
            stop.set()
            await watching


def print_sign_in(url: str, token: str | None, link: str | None, lacks_credentials: bool) -> None:
    lines = [f"rota: dashboard and API at {url}"]
    if token is not None:
        lines += [
            "rota: no token or user exists yet, so an admin token was created. It ends after a day, and is",
            "shown only once; create the tokens and users that you need with it:",
            f"  {token}",
        ]
    elif lacks_credentials:
        lines.append("rota: no token or user exists yet. Create a token: rota token create --role admin")
    if link is not None:
        either = "" if token is None else "or "
        lines += [
            f"rota: {either}open this link to sign in (valid once, for ten minutes, on this machine):",
            f"  {link}",
        ]
    for line in lines:
        click.echo(line, err=True)


def wants_link(requested: bool) -> bool:
    """Only if requested or on a terminal: a log file must not contain a sign-in link."""
    return requested or on_terminal()


def on_terminal() -> bool:
    """Whether a person reads the messages. A token must not go to a log file, which others read later."""
    return sys.stderr.isatty()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine, on uvloop if it is installed."""
    from uvicorn.loops.auto import auto_loop_factory

    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        return runner.run(main)
