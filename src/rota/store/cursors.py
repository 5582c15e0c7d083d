"""Pages: where one ends, where the next begins, and which rows of it can be read.

Owns the arithmetic that is the same in every store: rows are read with a limit one larger than asked,
the extra one tells whether a next page exists. Must never do I/O.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from ..errors import OptionError
from ..model import Page, PageRequest

log = logging.getLogger("rota.store")

T = TypeVar("T")
Row = tuple[Any, ...]

_PAIR = msgspec.json.Decoder(tuple[str, str])


def by_id(request: PageRequest) -> tuple[str, str]:
    """How a page by id is sorted and where it continues: ``DESC`` with ``<``, or ``ASC`` with ``>``."""
    return ("DESC", "<") if request.newest_first else ("ASC", ">")


def page(
    rows: Sequence[Row], limit: int, read: Callable[[Row], T], cursor: Callable[[Row], object]
) -> Page[T]:
    """The page, from rows of which at most one more than ``limit`` was read."""
    shown = rows[:limit]
    following = str(cursor(shown[-1])) if shown and len(rows) > limit else None
    return Page(items=readable(shown, read, cursor), next=following)


def readable(rows: Sequence[Row], read: Callable[[Row], T], name: Callable[[Row], object]) -> list[T]:
    """Every row that can be read; one that cannot is logged and left out, and never hides the others."""
    found = []
    for row in rows:
        try:
            found.append(read(row))
        except (ValueError, TypeError, LookupError) as error:
            log.warning("row %s cannot be read and is left out: %s", name(row), error)
    return found


def pair(first: str, second: str) -> str:
    """A cursor for lists that are sorted by two texts."""
    return msgspec.json.encode((first, second)).decode()


def read_pair(cursor: str | None) -> tuple[str, str] | None:
    if cursor is None:
        return None
    try:
        return _PAIR.decode(cursor)
    except msgspec.DecodeError as error:
        raise OptionError(
            f"cursor={cursor[:80]!r}: does not come from such a list; start without a cursor"
        ) from error
