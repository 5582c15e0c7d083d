"""Lists of queues, tasks, workers, tenants and gates: room at every width, in both themes."""

from __future__ import annotations

import pytest
from scene import Visit
from staff import silent

from admin.sites import Site
from rota.operate.asks import GateAsk

WIDTHS = (360, 720, 960, 1190, 1280, 1440, 2560)
LONG = "a_name_without_any_end_" * 5
NARROWEST = """
() => Math.min(...[...document.querySelectorAll("table.list td.head")].map((one) => one.clientWidth))
"""
CUT = """
() => [...document.querySelectorAll("table.list thead th")]
  .filter((one) => one.offsetParent && one.scrollWidth > one.clientWidth + 1).map((one) => one.innerText)
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/queues", "/queues/mail", "/tasks", "/workers", "/tenants", "/gates"])
def test_every_column_has_room_at_every_width(visit: Visit, site: Site, path: str, theme: str) -> None:
    silent(site, LONG)
    for scope in ("queue", "task", "tenant"):
        ask = GateAsk(scope=scope, name=LONG, reason=LONG, for_s=3600)  # type: ignore[arg-type]
        site.do(lambda ask=ask: site.desk().gates.pause(ask))  # type: ignore[misc]
    visitor = visit(path, color_scheme=theme)
    for width in WIDTHS:
        visitor.page.set_viewport_size({"width": width, "height": 900})
        assert visitor.overflow() <= 0, width
        assert visitor.page.evaluate(NARROWEST) >= 90, width
        assert width == 360 or visitor.page.evaluate(CUT) == [], width
