"""Read a table: the row of a name, the cell under a heading."""

from __future__ import annotations

from typing import Any

from browser_tools import Visitor

from admin.sites import Site
from rota.operate.views import GateView


def row(visitor: Visitor, name: str) -> Any:
    """The row with a link of this name."""
    return visitor.page.get_by_role("row").filter(has=visitor.page.get_by_role("link", name=name, exact=True))


def cell(visitor: Visitor, name: str, heading: str) -> Any:
    return row(visitor, name).locator(f'td[data-label="{heading}"]')


def gates(site: Site) -> dict[str, GateView]:
    """What is paused, as the server knows it."""
    return {gate.id: gate for gate in site.do(lambda: site.operations().gates.list()).items}
