"""Every list in one shape: columns as data, ``--json``, ``--limit`` and ``--cursor``, ``--watch``.

A list is a coroutine that fetches a page; ``listing`` makes a command of it. The empty state, the footer
and the command for the next page are printed here and nowhere else.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import click

from ...operate.requests import MOST
from ...terminal.table import Column, print_table
from ...terminal.text import json_text, on_terminal
from .options import json_option
from .paging import next_page_command
from .target import Target, store_time, target_options
from .watch_option import watchable

if TYPE_CHECKING:
    from ...operate import Operations

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


class Listed(Protocol[T_co]):
    """A page or anything else with items; encoded as it is for ``--json``."""

    @property
    def items(self) -> Sequence[T_co]: ...


class ListColumn(NamedTuple, Generic[T]):
    """A title and the cell of an item at the store's time; ``yields`` as in ``table.Column``."""

    title: str
    cell: Callable[[T, datetime], str]
    yields: int = 0
    right: bool = False


Columns = Sequence[ListColumn[T]]
Filters = Mapping[str, Any]  # the filters given on the command line


def print_items(columns: Columns[T], items: Sequence[T], now: datetime) -> None:
    """Print the items as a table."""
    titles = [Column(column.title, column.yields, column.right) for column in columns]
    print_table(titles, [[column.cell(item, now) for column in columns] for item in items])


def listing(
    group: click.Group,
    columns: Columns[Any],
    *,
    empty: str,
    no_match: str | Callable[[Filters], str] = "",
    footer: Callable[[Any, Mapping[str, Any]], str] | None = None,
    paged: bool = False,
    name: str = "list",
) -> Callable[[F], F]:
    """Add a list to the group; its docstring is the help, its click options are the filters.

    ``empty`` is shown if there is nothing at all, ``no_match`` if filters were given. The footer goes
    below the table: to stderr off a terminal, so that a pipe sees rows only.
    """

    def add(fetch: F) -> F:
        @click.pass_context
        def run(ctx: click.Context, /, as_json: bool, **given: Any) -> None:
            target = ctx.ensure_object(Target)
            listed, now = target.operations(lambda operations: _fetch(operations, fetch, given))
            if as_json:
                click.echo(json_text(listed))
                return
            if listed.items:
                print_items(columns, listed.items, now)
            else:
                click.echo(_nothing(empty, no_match, _filters(ctx, given)))
            _below("" if footer is None else footer(listed, given))
            _below(next_page_command(ctx, target, getattr(listed, "next", None)))

        command = watchable(_options(run, paged=paged))
        command.__click_params__ += getattr(fetch, "__click_params__", [])  # type: ignore[attr-defined]
        group.command(name, help=inspect.getdoc(fetch))(command)
        return fetch

    return add


def _options(command: Callable[..., Any], *, paged: bool) -> Callable[..., Any]:
    command = json_option("items", "next")(target_options(command))
    if paged:
        command = click.option("--cursor", help="Cursor from the previous page.")(command)
        command = limit_option(50)(command)
    return command


def limit_option(default: int) -> Callable[[F], F]:
    return click.option(
        "--limit", type=click.IntRange(1, MOST), default=default, show_default=True,
        help="Maximum number of rows.",
    )  # fmt: skip


async def _fetch(
    operations: Operations, fetch: Callable[..., Awaitable[Listed[Any]]], given: Mapping[str, Any]
) -> tuple[Listed[Any], datetime]:
    return await fetch(operations, **given), await store_time(operations)


def _filters(ctx: click.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in given.items()
        if name not in ("limit", "cursor")
        and ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }


def _nothing(empty: str, no_match: str | Callable[[Filters], str], filters: Filters) -> str:
    if not filters or not no_match:
        return empty
    return no_match if isinstance(no_match, str) else no_match(filters)


def _below(text: str) -> None:
    if text:
        click.echo(f"\n{text}", err=not on_terminal())
