"""The options that ``rota worker`` and ``rota up`` share, and how both end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from ...core.plurals import plural
from ...worker.worker import Worker
from .exit_codes import FAILED
from .options import apply_options
from .target import Target

C = TypeVar("C", bound=Callable[..., Any])


def _names(ctx: click.Context, param: click.Parameter, values: Iterable[str]) -> tuple[str, ...]:
    """``-q a,b -q c`` becomes (a, b, c)."""
    found = [name.strip() for value in values for name in value.split(",")]
    if not all(found):
        raise click.BadParameter("contains an empty name; use mail,default", ctx, param)
    return tuple(dict.fromkeys(found))


def _remember_imports(ctx: click.Context, param: click.Parameter, values: Iterable[str]) -> None:
    ctx.ensure_object(Target).imports = _names(ctx, param, values)


_OPTIONS = (
    click.option("--import", metavar="MODULES", multiple=True, expose_value=False, callback=_remember_imports,
                 help="Import modules that declare tasks: shop.mail, or a pattern such as 'shop.*.tasks' "
                 "(repeatable).  [env: ROTA_IMPORTS]"),
    click.option("-q", "--queues", multiple=True, callback=_names, metavar="NAMES",
                 help="Only these queues: mail,default (repeatable).  [default: all]"),
    click.option("--exclude-queues", multiple=True, callback=_names, metavar="NAMES",
                 help="All queues except these (repeatable)."),
    click.option("-c", "--concurrency", type=click.IntRange(1, 4096),
                 help="Jobs to run at once, per process.  [default: 32]"),
    click.option("--shutdown-timeout", type=click.FloatRange(0), metavar="SECONDS",
                 help="How long running jobs may continue after a stop signal.  [default: 30]"),
    click.option("--no-scheduler", is_flag=True, help="Do not fire schedules in this process."),
    click.option("-n", "--name", help="Worker name.  [default: the host name]"),
)  # fmt: skip


reload_option = click.option(
    "--reload", is_flag=True,
    help="For development: restart when a source file changes. Running jobs finish first.",
)  # fmt: skip


def run_options(command: C) -> C:
    """Give a command the options of a worker."""
    return apply_options(command, _OPTIONS)


def exit_code(worker: Worker) -> int:
    """1 if running jobs were released by a second signal; prints how many were released."""
    if worker.released:
        click.echo(f"rota: released {plural(worker.released, 'unfinished job')}", err=True)
    return FAILED if worker.was_forced else 0
