"""Finds the place in a value that JSON cannot carry through every store.

Pure, and linear in the size of the value: its own stack, no recursion, a bounded depth. It only
explains; ``canonical.py`` decides when to ask.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

MAX_DEPTH = 100
SMALLEST_INT, LARGEST_INT = -(2**63), 2**63 - 1
ATOMS = (
    type(None),
    bool,
    bytes,
    bytearray,
    memoryview,
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    uuid.UUID,
    decimal.Decimal,
)


class ValuePath:
    """A position inside the value; rendered only when there is something to report."""

    __slots__ = ("above", "depth", "step")

    def __init__(self, above: ValuePath | None, step: str, depth: int) -> None:
        self.above, self.step, self.depth = above, step, depth

    def __str__(self) -> str:
        steps: list[str] = []
        place: ValuePath | None = self
        while place is not None:
            steps.append(place.step)
            place = place.above
        steps.reverse()
        if len(steps) > 12:
            steps[6:-6] = [" … "]
        return "".join(steps)


def first_fault(value: Any, what: str) -> str | None:
    """The first thing in ``value`` that cannot be stored, as a sentence; None if there is none."""
    stack = [(value, ValuePath(None, what, 0))]
    while stack:
        item, place = stack.pop()
        if isinstance(item, ATOMS):
            continue
        fault = _scalar_fault(item)
        if fault is not None:
            if fault:
                return f"{place}: {fault}"
            continue
        children = _children(item)
        if children is None:
            return f"{place}: {_unknown(item)}"
        if place.depth >= MAX_DEPTH:
            return (
                f"{place}: nested deeper than {MAX_DEPTH} levels, or contains itself: "
                "flatten it, or store it elsewhere and pass a reference"
            )
        below: list[tuple[Any, ValuePath]] = []
        for step, child in children:
            if not isinstance(step, str):
                return f"{place}: {_bad_key(step[0])}"
            if fault := text_fault(step):
                return f"{place}: the key {_short(step)} {fault}"
            below.append((child, ValuePath(place, step, place.depth + 1)))
        stack.extend(reversed(below))
    return None


def text_fault(text: str) -> str | None:
    if "\0" in text:
        return "has a NUL character, which PostgreSQL cannot store: remove it, or pass bytes"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"has a lone surrogate (position {error.start}), so it is not valid text: repair it"
    return None


def _scalar_fault(item: Any) -> str | None:
    """A sentence; empty text if the scalar is fine; None if it is no scalar."""
    if isinstance(item, enum.Enum):
        item = item.value
    if isinstance(item, str):
        fault = text_fault(item)
        return f"the text {fault}" if fault else ""
    if isinstance(item, int):
        if SMALLEST_INT <= item <= LARGEST_INT:
            return ""
        return "the integer does not fit into 64 bits: pass it as text"
    if isinstance(item, float):
        return "" if math.isfinite(item) else f"{item!r} is not a JSON number: pass None or text"
    return None


def _children(item: Any) -> Iterator[tuple[Any, Any]] | None:
    """(step of the path, value) of a container. A step that is not text is a 1-tuple: a bad key."""
    if isinstance(item, dict):
        return ((_key_step(key), child) for key, child in item.items())
    if isinstance(item, (list, tuple, set, frozenset)):
        return ((f"[{index}]", child) for index, child in enumerate(item))
    if isinstance(item, enum.Enum):
        return iter([(".value", item.value)])
    if isinstance(item, type):
        return None
    if isinstance(item, msgspec.Struct):
        return _attributes(item, item.__struct_fields__)
    if dataclasses.is_dataclass(item):
        return _attributes(item, tuple(field.name for field in dataclasses.fields(item)))
    if (fields := getattr(type(item), "__attrs_attrs__", None)) is not None:
        return _attributes(item, tuple(field.name for field in fields))
    if (dumped := dump_model(item)) is not None:
        return _children(dumped) or iter([("", dumped)])
    return None


def dump_model(item: Any) -> Any:
    """The plain form of a pydantic model (known by its method, never imported); None for others."""
    dump = getattr(item, "model_dump", None)
    return dump(mode="json") if callable(dump) else None


def _attributes(item: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    return ((f".{name}", getattr(item, name, None)) for name in names)


def _key_step(key: Any) -> Any:
    if isinstance(key, str):
        return f".{key}" if key.isidentifier() else f"[{key!r}]" if text_fault(key) is None else key
    try:
        text = msgspec.json.decode(msgspec.json.encode({key: None}))
    except Exception:  # whatever the key's own code may raise
        return (key,)
    return f"[{next(iter(text))!r}]"


def _bad_key(key: Any) -> str:
    return f"a key of type {type(key).__qualname__} cannot be a JSON key: use text or an integer"


def _unknown(item: Any) -> str:
    kind = type(item)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return (
        f"a value of type {name} cannot be stored as JSON: "
        "pass plain values, a dataclass, a msgspec Struct or a pydantic model"
    )


def _short(text: str) -> str:
    shown = ascii(text)
    return shown if len(shown) <= 60 else shown[:57] + "…'"
