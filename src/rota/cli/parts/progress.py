"""Progress of what takes a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def progress(label: str, steps: int) -> Iterator[Callable[[int], object]]:
    """A bar on a terminal; silence elsewhere. What is yielded is told of each step."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    drawn_every = max(steps // 100, 1)
    with click.progressbar(length=steps, label=label, file=sys.stderr, update_min_steps=drawn_every) as bar:
        yield bar.update
