"""Pages of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from .value import Value


class PageRequest(Value, frozen=True, kw_only=True):
    limit: int = 50
    cursor: str | None = None
    newest_first: bool = True
    brief: bool = False  # of jobs: without payload and output, which may be large


T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some items of a list, and the ``cursor`` of the following page; None: there is no other."""

    items: Sequence[T]
    next: str | None = None
