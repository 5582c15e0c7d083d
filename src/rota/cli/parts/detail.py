"""The parts of a page about one thing: facts, blocks of text, a warning."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...terminal.text import safe, style


def fact_lines(facts: Iterable[tuple[str, Any]]) -> list[str]:
    """``name  value`` for each value that is not None or empty."""
    return [f"  {name:<15}{safe(value)}" for name, value in facts if value not in (None, "")]


def block(title: str, text: str) -> list[str]:
    """Indented lines under a heading."""
    return section(title, (f"  {line}" for line in text.splitlines()))


def section(title: str, lines: Iterable[str], summary: str = "") -> list[str]:
    return [f"\n{style(title, bold=True)}{summary and '  '}{summary}", *(line.rstrip() for line in lines)]


def warning(text: str | None) -> list[str]:
    return [f"\n  {style('! ' + safe(text), 'yellow')}"] if text else []
