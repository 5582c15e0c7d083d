"""Asking before something that cannot be taken back."""

from __future__ import annotations

import click

from .failures import Failure


def confirm(effect: str, question: str, *, yes: bool) -> None:
    """State the effect and ask; a Failure unless the answer is yes."""
    if yes:
        return
    click.echo(effect, err=True)
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        raise Failure("nobody answered, so nothing was done: give --yes to do it without asking") from None
    if not agreed:
        raise Failure("nothing was done")
