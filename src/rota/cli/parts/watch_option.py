"""``--watch``: a listing that is drawn again in place until Ctrl-C."""

from __future__ import annotations

import functools
import io
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, TypeVar

import click

from ...errors import StoreUnavailable
from ...terminal.text import on_terminal, safe, style

C = TypeVar("C", bound=Callable[..., Any])

OFTEN_S, USUAL_S = 0.2, 2.0
CLEAR, HOME, END_OF_LINE, REST = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"


def watchable(command: C) -> C:
    """Give a listing ``--watch``; the outermost decorator under ``@group.command``."""

    @click.option(
        "--watch", is_flag=False, flag_value=USUAL_S, type=click.FloatRange(OFTEN_S), metavar="[SECONDS]",
        help=f"Draw it again, every {USUAL_S:g} s unless told otherwise, until Ctrl-C.",
    )  # fmt: skip
    @functools.wraps(command)
    def run(*args: Any, watch: float | None, **given: Any) -> Any:
        if watch is None:
            return command(*args, **given)
        if not on_terminal():
            raise click.UsageError(
                "--watch draws on a terminal, and this is none: leave it out, or use --json."
            )
        return _repeat(lambda: command(*args, **given), watch)

    return run  # type: ignore[return-value]


def _repeat(draw: Callable[[], object], every: float) -> None:
    import asyncio

    from ...runtime.service import pause

    first = True
    try:
        while True:
            _show(_frame(draw, first), every, first)
            first = False
            asyncio.run(pause(every, asyncio.Event()))
    except KeyboardInterrupt:
        click.echo()


class _Frame(io.StringIO):
    """What would have gone to the terminal, colours and widths included."""

    def isatty(self) -> bool:
        return True


def _frame(draw: Callable[[], object], first: bool) -> str:
    """One picture. A store that is away for a moment does not end the watch, unless it never was there."""
    frame = _Frame()
    try:
        with redirect_stdout(frame):
            draw()
    except StoreUnavailable as error:
        if first:
            raise
        return f"rota: {safe(error)}\nTrying again."
    return frame.getvalue()


def _show(frame: str, every: float, first: bool) -> None:
    room = max(shutil.get_terminal_size().lines - 1, 2)
    head = style(f"Every {every:g} s; Ctrl-C ends.", dim=True)
    lines = [head, "", *frame.splitlines()][:room]
    picture = "".join(f"{line}{END_OF_LINE}\n" for line in lines)
    sys.stdout.write(f"{CLEAR if first else ''}{HOME}{picture}{REST}")
    sys.stdout.flush()
