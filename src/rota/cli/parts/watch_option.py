"""``--watch``: a list that is redrawn in place until Ctrl-C."""

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

MIN_SECONDS, DEFAULT_SECONDS = 0.2, 2.0
CLEAR, HOME, END_OF_LINE, CLEAR_BELOW = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"


def watchable(command: C) -> C:
    """Give a list ``--watch``; the outermost decorator that wraps the callback."""

    @click.option(
        "--watch", is_flag=False, flag_value=DEFAULT_SECONDS, type=click.FloatRange(MIN_SECONDS),
        metavar="[SECONDS]", help=f"Refresh every SECONDS (default {DEFAULT_SECONDS:g}) until Ctrl-C.",
    )  # fmt: skip
    @functools.wraps(command)
    def run(*args: Any, watch: float | None, **given: Any) -> Any:
        if watch is None:
            return command(*args, **given)
        if not on_terminal():
            raise click.UsageError("--watch needs a terminal. Leave it out, or use --json.")
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
    """Captures output as a terminal would receive it, colours and widths included."""

    def isatty(self) -> bool:
        return True


def _frame(draw: Callable[[], object], first: bool) -> str:
    """One frame. A store that becomes unavailable later does not end the watch."""
    frame = _Frame()
    try:
        with redirect_stdout(frame):
            draw()
    except StoreUnavailable as error:
        if first:
            raise
        return f"rota: {safe(error)}\nRetrying."
    return frame.getvalue()


def _show(frame: str, every: float, first: bool) -> None:
    height = max(shutil.get_terminal_size().lines - 1, 2)
    head = style(f"Every {every:g} s. Press Ctrl-C to stop.", dim=True)
    lines = [head, "", *frame.splitlines()][:height]
    picture = "".join(f"{line}{END_OF_LINE}\n" for line in lines)
    sys.stdout.write(f"{CLEAR if first else ''}{HOME}{picture}{CLEAR_BELOW}")
    sys.stdout.flush()
