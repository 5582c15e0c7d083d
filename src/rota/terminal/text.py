"""Text for people: escaped strings, times and durations, states with glyph and colour.

Everything stored is hostile until it has been through ``safe`` or ``json_text``: control characters
and escape sequences must never reach a terminal unescaped.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import Any

import click

from ..core.schedules.names import short_name

# state or event: (glyph, colour)
STATE_STYLES: dict[str, tuple[str, str]] = {
    "waiting": ("◇", "magenta"),
    "queued": ("○", "cyan"),
    "running": ("▶", "blue"),
    "succeeded": ("✓", "green"),
    "failed": ("✗", "red"),
    "cancelled": ("⊘", "bright_black"),
    "retried": ("↻", "yellow"),
    "draining": ("◌", "yellow"),
    "paused": ("‖", "yellow"),
    "lost": ("✗", "red"),
    "enabled": ("●", "green"),
    "disabled": ("○", "bright_black"),
    "planned": ("◷", "bright_black"),
    "fired": ("◷", "magenta"),
}
UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def on_terminal() -> bool:
    return sys.stdout.isatty()


def coloured() -> bool:
    """Colour only on a terminal, and not if NO_COLOR (no-color.org) is set."""
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def style(text: str, colour: str | None = None, *, bold: bool = False, dim: bool = False) -> str:
    return click.style(text, fg=colour, bold=bold or None, dim=dim or None) if coloured() else text


def state(name: str, *, word: str | None = None) -> str:
    """The name of a state, or ``word``; on a terminal with its glyph and colour."""
    glyph, colour = STATE_STYLES.get(name, ("·", "white"))
    shown = word or name
    return style(f"{glyph} {shown}", colour) if on_terminal() else shown


def safe(text: Any, *, lines: bool = False) -> str:
    """The text with control characters escaped. ``lines``: keep line breaks and tabs."""
    kept = "\n\t" if lines else ""
    return "".join(c if c.isprintable() or c in kept else _escaped(c) for c in str(text))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def json_text(value: Any, *, indent: int = 0) -> str:
    """JSON that is safe on a terminal and decodes to the same value."""
    import msgspec

    encoded = msgspec.json.encode(value)
    text = (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()
    return "".join(c if c.isprintable() or c == "\n" else _json_escaped(c) for c in text)


def _json_escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def short_duration(seconds: float | None) -> str:
    """A duration in one unit: 80 ms, 3.2 s, 45 s, 5 min, 2 h, 4 d; – for None."""
    if seconds is None:
        return "–"
    seconds = abs(seconds)
    for size, unit in UNITS:
        if seconds >= size:
            return f"{round(seconds / size)} {unit}"
    if seconds >= 10:
        return f"{round(seconds)} s"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{int(seconds * 1000)} ms"


def relative_time(at: datetime | None, now: datetime) -> str:
    """``in 5 min``, ``3 s ago``, ``now``."""
    if at is None:
        return "–"
    ahead = (at - now).total_seconds()
    if abs(ahead) < 0.5:
        return "now"
    rounded = short_duration(max(round(abs(ahead)), 1)).replace(".0", "")
    return f"in {rounded}" if ahead > 0 else f"{rounded} ago"


def utc_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def rate(number: float) -> str:
    """Few digits: 0, <0.1, 0.3, 12, 4,800."""
    if 0 < number < 0.1:
        return "<0.1"
    return f"{number:,.0f}" if number >= 10 or number == 0 else f"{number:.1f}"


def qualified_name(tenant: str | None, name: str) -> str:
    """``nightly``, or ``acme/nightly`` outside the default tenant: as commands take it."""
    return safe(short_name(tenant, name))
