"""``rota migrate``: bring the store's schema up to date, check it, or print it as SQL."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..app import Rota
from .failures import SCHEMA
from .target import Target, pass_target, target_options
from .text import plural


@click.command()
@click.option(
    "--check",
    is_flag=True,
    help="List what would be changed, and change nothing. Exit 4 if there is anything.",
)
@click.option("--sql", is_flag=True, help="Print the whole schema as SQL without connecting.")
@target_options
@pass_target
def migrate(target: Target, check: bool, sql: bool) -> None:
    """Bring the store's schema up to date. Safe to run from several places at once."""
    if check and sql:
        raise click.UsageError("--check and --sql were both given: keep one.")
    if sql:
        click.echo(target.open().stores.root().schema.text)
    elif check:
        _check(target.ask(_pending))
    else:
        _report(target.ask(lambda app: app.migrate()))


async def _pending(app: Rota) -> Sequence[str]:
    store = app.stores.root()
    try:
        return await store.schema.pending()
    finally:
        await store.close()


def _check(pending: Sequence[str]) -> None:
    if not pending:
        click.echo("The schema is up to date.")
        return
    click.echo(f"{plural(len(pending), 'change')} pending; apply with rota migrate:")
    for name in pending:
        click.echo(f"  {name}")
    raise SystemExit(SCHEMA)


def _report(applied: Sequence[str]) -> None:
    for name in applied:
        click.echo(f"applied {name}")
    if not applied:
        click.echo("The schema is up to date: nothing to apply.")
