"""What ``rota serve``, ``rota up`` and ``rota demo`` share: where to listen, and how people get in."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...app import Rota
from ...errors import ConfigError
from ...runtime import systemd
from ...runtime.service import watchdog

if TYPE_CHECKING:
    from ...admin.server import Listen, Server

T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--host", help="Where to listen.  [default: admin_host, 127.0.0.1]"),
    click.option("--port", type=click.IntRange(0, 65_535), help="[default: admin_port, 8765; 0: any]"),
    click.option("--behind-proxy", is_flag=True, help="A proxy of yours speaks TLS: trust X-Forwarded-*."),
    click.option("--allowed-host", "allowed_hosts", multiple=True, metavar="NAME",
                 help="A name that the server goes by; may be repeated."),
    click.option("--tls-cert", metavar="FILE", help="Speak TLS with this certificate."),
    click.option("--tls-key", metavar="FILE", help="Its key."),
    click.option("--print-link", is_flag=True, help="Print a one-time sign-in link even without a terminal."),
)  # fmt: skip
LISTEN = ("host", "port", "behind_proxy", "allowed_hosts", "tls_cert", "tls_key")


def listen_options(command: C) -> C:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def listen_at(app: Rota, given: dict[str, Any]) -> Listen:
    """Where to listen: takes its own options out of ``given``. Refused if it is not safe."""
    try:
        from ...admin.server import Listen
    except ImportError as error:
        raise ConfigError(
            f"the admin server needs {error.name}, which is not installed: pip install 'rota[server]'"
        ) from error
    said = {name: given.pop(name) for name in LISTEN}
    settings = app.settings
    usual = {
        "host": settings.admin_host,
        "port": settings.admin_port,
        "behind_proxy": settings.behind_proxy,
        "allowed_hosts": settings.allowed_hosts,
        "tls_cert": settings.tls_cert,
        "tls_key": settings.tls_key,
    }
    is_unsaid = (None, (), False)
    chosen = {name: value for name, value in said.items() if not any(value is one for one in is_unsaid)}
    listen = Listen(**{**usual, **chosen})
    listen.check()
    return listen


@asynccontextmanager
async def served(app: Rota, listen: Listen, *, link: bool) -> AsyncIterator[Server]:
    """Serve while the block runs; tell people how to get in, and systemd that we are there."""
    from ...admin.first_token import first_token
    from ...admin.server import serving

    stop = asyncio.Event()
    async with serving(app, listen) as server:
        for line in sign_in_lines(server, await first_token(app), link=link):
            click.echo(line, err=True)
        systemd.ready(f"serving {server.url}")
        watching = asyncio.create_task(watchdog(stop), name="rota-watchdog")
        try:
            yield server
        finally:
            stop.set()
            await watching


def sign_in_lines(server: Server, token: str | None, *, link: bool) -> list[str]:
    lines = [f"rota: the admin interface is at {server.url}"]
    if token is not None:
        lines += [
            "rota: nobody could sign in yet, so here is an admin token. It is shown this once:",
            f"  {token}",
        ]
    if link:
        either = "" if token is None else "or "
        lines += [
            f"rota: {either}sign in by this link, once, within ten minutes, on this machine:",
            f"  {server.link()}",
        ]
    return lines


def wants_link(asked: bool) -> bool:
    """A link in a log file would be a key under the mat."""
    return asked or sys.stderr.isatty()


def run(main: Coroutine[Any, Any, T]) -> T:
    """On uvloop where it is installed."""
    from uvicorn.loops.auto import auto_loop_factory

    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        return runner.run(main)
