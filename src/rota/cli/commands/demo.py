"""``rota demo``: everything with one command, and sample tasks."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from pathlib import Path

import click

from ...terminal.text import on_terminal
from ..parts import logs
from ..parts.exit_codes import FAILED
from ..parts.server_options import API_PROGRAM
from ..parts.target import Target, pass_target, url_option


@click.command()
@click.option("--seconds", type=click.FloatRange(0.1), metavar="N", help="Stop after N seconds.")
@click.option("--quiet", is_flag=True, help="Print summaries only, no line per job.")
@click.option(
    "--print-link", is_flag=True, help="Print a one-time sign-in link, even if the output is not a terminal."
)
@url_option
@pass_target
def demo(target: Target, seconds: float | None, quiet: bool, print_link: bool) -> None:
    """Try rota: a store, a worker, the dashboard and sample tasks with one command.

    Uses a fresh SQLite file in a temporary directory unless --url names a store.
    """
    target.require_store()
    # The sample tasks read it, also in the processes that some of them run in.
    os.environ["ROTA_URL"] = target.url or _fresh()
    logs.set_up("error", "text")
    logging.getLogger("rota.worker").setLevel(logging.CRITICAL)  # some tasks fail on purpose, in their place
    from ...demo.show import show
    from ...demo.tasks import app

    is_drained = asyncio.run(
        show(app, seconds=seconds, quiet=quiet, api_module=API_PROGRAM, link=print_link or on_terminal())
    )
    if not is_drained:
        raise SystemExit(FAILED)


def _fresh() -> str:
    folder = Path(tempfile.mkdtemp(prefix="rota-demo-"))
    return f"sqlite:///{folder.as_posix()}/demo.db"
