"""Templates of SQL: placeholders for the column lists that come from ``fields.py``.

Owns the notation. ``{carried}`` is a list by its name, ``{carried of t}`` prefixes each column,
``{carried except key, tags}`` leaves some out, so that a statement names only what it treats in its
own way; ``{queued columns}``, a list of definitions, has a line for each. Must never know what a list
means.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping

WIDTH = 112
_GLUE = "\x1f"  # a space at which no line is broken

# A list: columns with a prefix such as ``t.``, without those that are left out.
ColumnList = Callable[[str, frozenset[str]], list[str]]

_PLACEHOLDER = re.compile(r"\{([a-z_]+(?: [a-z]+)?)(?: of ([a-z_]+))?(?: except ([a-z_, \n]+))?\}")


def render(template: str, lists: Mapping[str, ColumnList]) -> str:
    """The template with every placeholder filled in; KeyError names one that is unknown."""

    def fill(found: re.Match[str]) -> str:
        name, of, without = found.groups()
        excluded = frozenset(re.split(r",\s*", without.strip())) if without else frozenset[str]()
        prefix = f"{of}." if of else ""
        known = lists[name](prefix, frozenset())
        columns = lists[name](prefix, excluded)
        if len(known) - len(columns) != len(excluded):
            raise KeyError(f"{found[0]}: not all of these are in the list")
        if name.endswith(" columns"):
            return ",\n    ".join(columns)
        return ", ".join(column.replace(" ", _GLUE) for column in columns)

    lines = []
    for line in _joined(template):
        filled = _PLACEHOLDER.sub(fill, line)
        lines.append(filled if filled == line or "\n" in filled else _wrapped(filled))
    return "\n".join(lines).replace(_GLUE, " ")


def _joined(template: str) -> list[str]:
    """The lines; a placeholder that runs over the end of one is brought together."""
    return re.sub(r"\{[a-z][a-z_, \n]*\}", lambda found: " ".join(found[0].split()), template).split("\n")


def _wrapped(line: str) -> str:
    if len(line) <= WIDTH:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    wrapped = textwrap.wrap(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(wrapped)
