"""A progress bar for long commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def progress(label: str, steps: int) -> Iterator[Callable[[int], object]]:
    """A bar on a terminal, nothing elsewhere. Call what it yields with the steps just done."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    drawn_every = max(steps // 100, 1)
    with click.progressbar(length=steps, label=label, file=sys.stderr, update_min_steps=drawn_every) as bar:
        yield bar.update
