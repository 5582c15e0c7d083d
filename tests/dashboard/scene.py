"""A shop with jobs in every state, for the dashboard's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browser_tools import Visitor

from admin.sites import Site
from rota import Backoff, Context, Rota
from rota.testing import drain

Visit = Callable[..., Visitor]  # (path, role, tenant, what a browser context takes)
BIG = 9_123_456_789_012_345_678  # beyond what a browser's numbers hold


def declare(app: Rota) -> None:
    @app.task(
        name="send_receipt", queue="mail", max_attempts=3, backoff=Backoff(base=3600, factor=1, cap=3600)
    )
    async def send_receipt(ctx: Context, order_id: int, note: str = "") -> dict[str, Any]:
        ctx.log(f"rendered order {order_id}")
        return {"sent": True, "number": BIG, "page": "https://example.com/receipts/1"}

    @app.task(name="charge_card", queue="billing", max_attempts=1)
    async def charge_card(order_id: int) -> None:
        raise KeyError("vat_rate")

    @app.task(name="poll_feed", queue="feed", max_attempts=3, backoff=Backoff(base=3600, factor=1, cap=3600))
    async def poll_feed(ctx: Context) -> None:
        ctx.log("asked the partner", level="warning")
        raise ConnectionError("the partner hung up")


async def work(app: Rota) -> None:
    """Three succeed, four fail, one retries, one is due later, one has an unknown task; bulk is paused."""
    for order in (1, 2, 3):
        await app.enqueue("send_receipt", {"order_id": order}, tenant="acme", tags=("eu",))
    for order in (10, 11, 12, 13):
        await app.enqueue("charge_card", {"order_id": order})
    await app.enqueue("poll_feed", {})
    await drain(app)
    await app.enqueue("send_receipt", {"order_id": BIG, "note": "<b>bold</b>"}, delay=7200, tenant="globex")
    await app.enqueue("render_invoice", {"id": 7}, queue="pdf")
    await app.pause(queue="bulk", reason="the provider is down")
    await app.schedules.create(name="nightly", task="send_receipt", cron="0 3 * * *", payload={"order_id": 0})
    await app.schedules.create(name="each_quarter", task="poll_feed", every=900)


def stage(url: str) -> Site:
    site = Site(url)
    declare(site.rota)
    site.do(lambda: work(site.rota))
    return site
