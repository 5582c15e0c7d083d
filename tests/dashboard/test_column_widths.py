"""Lists of jobs, queues, tasks, workers, tenants and pauses fit at every width, whatever the names."""

from __future__ import annotations

from scene import Visit
from staff import silent

from admin.sites import Site
from rota.operate.requests import GateRequest

PATHS = ("/jobs", "/queues", "/queues/mail", "/tasks", "/workers", "/tenants", "/limits", "/gates")
WIDTHS = (360, 720, 960, 1190, 1280, 1440, 2560)
LONG = "a_name_without_any_end_" * 5
NARROWEST = """
() => Math.min(...[...document.querySelectorAll("table.list td.head")].map((one) => one.clientWidth))
"""
CUT = """
() => [...document.querySelectorAll("table.list thead th")]
  .filter((one) => one.offsetParent && one.scrollWidth > one.clientWidth + 1).map((one) => one.innerText)
"""


def test_every_column_fits_at_every_width(visit: Visit, site: Site) -> None:
    silent(site, LONG)
    site.job(LONG, queue=LONG, tenant=LONG)
    for scope in ("queue", "task", "tenant"):
        ask = GateRequest(scope=scope, name=LONG, reason=LONG, for_s=3600)  # type: ignore[arg-type]
        site.do(lambda ask=ask: site.operations().gates.pause(ask))  # type: ignore[misc]
    site.do(lambda: site.rota.limits.set(f"queue:{LONG}", running=1, rate="100000/31d", burst=100_000))
    site.do(lambda: site.rota.limits.set(f"key:{LONG}*", running=1))
    visitor = visit("/lost")
    for path in PATHS:
        visitor.go(path)
        for width in WIDTHS:
            visitor.resize(width)
            assert visitor.overflow() <= 0, (path, width)
            assert visitor.page.evaluate(NARROWEST) >= 90, (path, width)
            assert width == 360 or visitor.page.evaluate(CUT) == [], (path, width)
