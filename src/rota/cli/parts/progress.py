"""A progress bar for long commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def progress(label: str, steps: int | None) -> Iterator[Callable[[int], object]]:
    """A bar on a terminal, nothing elsewhere. Call what it yields with the steps just done.

    ``steps`` None: their number is unknown, so the steps done are counted.
    """
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    if steps is None:
        with _counting(label) as count:
            yield count
        return
    drawn_every = max(steps // 100, 1)
    with click.progressbar(length=steps, label=label, file=sys.stderr, update_min_steps=drawn_every) as bar:
        yield bar.update


@contextmanager
def _counting(label: str) -> Iterator[Callable[[int], object]]:
    total = 0

    def count(done: int) -> None:
        nonlocal total
        total += done
        click.echo(f"\r{label}  {total:,} so far", nl=False, err=True)

    count(0)
    try:
        yield count
    finally:
        click.echo(err=True)
