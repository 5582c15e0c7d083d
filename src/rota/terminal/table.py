"""Tables that fit a terminal. Off a terminal nothing is cut, so that other programs see it all."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import click

from .text import on_terminal, style

GAP = 2
MIN_WIDTH = 6  # a column is dropped rather than squeezed below this


class Column(NamedTuple):
    """``yields``: the order in which columns shrink when space is short; 0: never."""

    title: str
    yields: int = 0
    right: bool = False


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print the rows under their titles. Cells may be styled; they must be safe already."""
    heading, *lines = table_lines(
        columns, rows, shutil.get_terminal_size().columns if on_terminal() else None
    )
    click.echo(style(heading, dim=True))
    for line in lines:
        click.echo(line)


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]], limit: int | None) -> list[str]:
    """The heading and the rows, each at most ``limit`` cells wide. None: no limit."""
    cells = [[column.title for column in columns], *rows]
    widths = [max(width(row[i]) for row in cells) for i in range(len(columns))]
    if limit is not None:
        widths = fit(columns, widths, limit)
    return [_line(columns, row, widths) for row in cells]


def fit(columns: Sequence[Column], widths: Sequence[int], limit: int) -> list[int]:
    """Widths that add up to at most ``limit``: yielding columns shrink, then vanish, lowest number first."""
    fitted = list(widths)
    order = sorted((c.yields, i) for i, c in enumerate(columns) if c.yields)
    for _, position in order:
        excess = _total(fitted) - limit
        if excess <= 0:
            break
        left = fitted[position] - excess
        fitted[position] = left if left >= MIN_WIDTH else 0
    return fitted


def _total(widths: Sequence[int]) -> int:
    shown = [w for w in widths if w]
    return sum(shown) + GAP * (len(shown) - 1)


def _line(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = [
        _cell(cell, size, column.right)
        for column, cell, size in zip(columns, cells, widths, strict=True)
        if size
    ]
    return (" " * GAP).join(shown).rstrip()


def _cell(text: str, size: int, right: bool) -> str:
    if width(text) > size:
        text = cut(click.unstyle(text), size)
    padding = " " * (size - width(text))
    return padding + text if right else text + padding


def cut(text: str, size: int) -> str:
    """The beginning of the text that fits, with … where some is missing."""
    if width(text) <= size:
        return text
    kept, used = [], 0
    for character in text:
        used += _cells(character)
        if used > size - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def width(text: str) -> int:
    """How many cells of a terminal the text takes."""
    plain = click.unstyle(text)
    return len(plain) if plain.isascii() else sum(map(_cells, plain))


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
