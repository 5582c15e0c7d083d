"""``rota migrate``: bring the store's schema up to date, check it, or print it as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import click

from ...app import Rota
from ...core.plurals import plural
from ..parts.exit_codes import SCHEMA
from ..parts.target import Target, pass_target, store_options


@click.command()
@click.option(
    "--check",
    is_flag=True,
    help="List what would be changed, and change nothing. Exit 4 if there is anything.",
)
@click.option("--sql", is_flag=True, help="Print the whole schema as SQL without connecting.")
@click.option(
    "--row-security",
    is_flag=True,
    help="Print SQL that lets a PostgreSQL role read one tenant's rows, without connecting.",
)
@store_options
@pass_target
def migrate(target: Target, check: bool, sql: bool, row_security: bool) -> None:
    """Migrate the store's schema. Safe to run from several places at once."""
    if check + sql + row_security > 1:
        raise click.UsageError("--check, --sql and --row-security cannot be combined.")
    if row_security:
        click.echo(files("rota.store.postgres").joinpath("row_security.sql").read_text("utf-8"), nl=False)
    elif sql:
        click.echo(target.open().stores.root().schema.text)
    elif check:
        _echo_pending(target.run(_pending))
    else:
        _echo_applied(target.run(lambda app: app.migrate()))


async def _pending(app: Rota) -> Sequence[str]:
    store = app.stores.root()
    try:
        return await store.schema.pending()
    finally:
        await store.close()


def _echo_pending(pending: Sequence[str]) -> None:
    if not pending:
        click.echo("The schema is up to date.")
        return
    click.echo(f"{plural(len(pending), 'change')} pending; apply with rota migrate:")
    for name in pending:
        click.echo(f"  {name}")
    raise SystemExit(SCHEMA)


def _echo_applied(applied: Sequence[str]) -> None:
    for name in applied:
        click.echo(f"applied {name}")
    if not applied:
        click.echo("The schema is up to date: nothing to apply.")
