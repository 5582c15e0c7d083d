"""Small SVG plots of drain rates by size, for light and dark themes. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from . import results
from .catalogue import BY_NAME
from .results import Results

SERIES = ("grow-backlog", "grow-history", "grow-queues", "grow-workers")
WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 40
STYLE = """
 text { font: 12px system-ui, sans-serif; fill: #444 } .title { font-size: 14px; fill: #111 }
 line { stroke: #ddd } polyline { fill: none; stroke: #2463b0; stroke-width: 2 } circle { fill: #2463b0 }
 @media (prefers-color-scheme: dark) {
  text { fill: #bbb } .title { fill: #eee } line { stroke: #444 } polyline { stroke: #7fb2f0 }
  circle { fill: #7fb2f0 }
 }"""


def titles(found: Results) -> dict[str, str]:
    """File name and title of each plot that has results."""
    return {f"{name}.svg": BY_NAME[name].title for name in SERIES if _points(found, name)}


def drawings(found: Results) -> dict[str, str]:
    return {
        f"{name}.svg": draw(BY_NAME[name].title, points)
        for name in SERIES
        if (points := _points(found, name))
    }


def _points(found: Results, name: str) -> list[tuple[str, float]]:
    scenario = BY_NAME[name]
    values = [
        (entry.label, results.median(found, name, entry.label, scenario.shown[0]))
        for entry in scenario.entries
    ]
    return [(label, value) for label, value in values if value is not None]


def draw(title: str, points: Sequence[tuple[str, float]]) -> str:
    """Plot rates over evenly spaced labels, from zero, so that a flat line means a flat rate."""
    top = _ceiling(max(value for _, value in points))
    step = (WIDTH - LEFT - RIGHT) / max(len(points) - 1, 1)
    places = [(LEFT + step * k, _y(value, top)) for k, (_, value) in enumerate(points)]
    parts = [f'<text class="title" x="{LEFT}" y="22">{escape(title)}, jobs/s</text>']
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = _y(top * share, top)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{top * share:,.0f}</text>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(f'<polyline points="{line}"/>')
    for (label, value), (x, y) in zip(points, places, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{value:,.0f}</title></circle>')
        anchor = "end" if x > WIDTH - LEFT else "middle"
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 16}" text-anchor="{anchor}">{escape(label)}</text>')
    body = "\n".join(parts)
    box = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>\n<style>{STYLE}\n</style>\n{body}\n</svg>\n'


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top


def _ceiling(value: float) -> float:
    """A round number that is not below the value."""
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * k for k in (1, 2, 4, 6, 8, 10) if size * k >= value)
