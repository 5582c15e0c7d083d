"""One action on several things by name: one line each, and exit code 1 if any of them failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import click

from ...errors import IllegalMove, NotFound
from ...terminal.text import safe


async def act_on_each(names: Iterable[str], act: Callable[[str], Awaitable[str]]) -> int:
    """Print the line that ``act`` returns for each name; returns how many failed."""
    failed = 0
    for name in dict.fromkeys(names):
        try:
            click.echo((await act(name)).rstrip())
        except (NotFound, IllegalMove) as error:
            failed += 1
            click.echo(f"rota: {safe(error)}", err=True)
    return failed
