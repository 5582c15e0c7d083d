"""Prompts before something that cannot be undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from ...core.plurals import plural
from .exit_codes import CommandFailed

T = TypeVar("T")

TYPED_FROM = 10  # to delete more than this, the number must be typed


def confirm(effect: str, question: str, *, yes: bool) -> None:
    """State the effect and ask; ``CommandFailed`` unless the answer is yes."""
    if yes:
        return
    click.echo(effect, err=True)
    if not _prompt(lambda: click.confirm(question, err=True)):
        raise CommandFailed("not confirmed; nothing was changed")


def confirm_delete(effect: str, count: int, *, yes: bool) -> None:
    """The same before jobs are deleted; for many, their number must be typed."""
    if yes or count <= TYPED_FROM:
        return confirm(effect, f"Delete {plural(count, 'job')}?", yes=yes)
    click.echo(effect, err=True)
    typed = _prompt(
        lambda: click.prompt(f"Type {count} to confirm", default="", show_default=False, err=True)
    )
    if typed.strip().replace(",", "") != str(count):
        raise CommandFailed("the number does not match; nothing was changed")


def _prompt(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except click.Abort:
        click.echo(err=True)
        raise CommandFailed("not confirmed; nothing was changed. Pass --yes to skip the prompt") from None
