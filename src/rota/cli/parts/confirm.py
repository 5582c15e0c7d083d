"""Asking before something that cannot be taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from ...terminal.text import plural
from .exit_codes import CommandFailed

T = TypeVar("T")

TYPED_FROM = 10  # more than so many cannot be deleted by a slip of the finger


def confirm(effect: str, question: str, *, yes: bool) -> None:
    """State the effect and ask; a Failure unless the answer is yes."""
    if yes:
        return
    click.echo(effect, err=True)
    if not _answered(lambda: click.confirm(question, err=True)):
        raise CommandFailed("nothing was done")


def confirm_loss(effect: str, count: int, *, yes: bool) -> None:
    """The same before jobs are deleted; of many, their number must be typed."""
    if yes or count <= TYPED_FROM:
        return confirm(effect, f"Delete {plural(count, 'job')}?", yes=yes)
    click.echo(effect, err=True)
    typed = _answered(
        lambda: click.prompt(f"Type {count} to delete them", default="", show_default=False, err=True)
    )
    if typed.strip().replace(",", "") != str(count):
        raise CommandFailed("that is not their number: nothing was done")


def _answered(question: Callable[[], T]) -> T:
    try:
        return question()
    except click.Abort:
        click.echo(err=True)
        raise CommandFailed(
            "nobody answered, so nothing was done: give --yes to do it without asking"
        ) from None
