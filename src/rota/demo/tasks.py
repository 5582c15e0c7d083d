"""Sample tasks, one of each kind. The store comes from ROTA_URL: task processes import this again."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from rota import Backoff, Cancel, Context, Limit, Rota

app = Rota()


@app.task(name="demo.greet", queue="demo")
async def greet(name: str) -> dict[str, str]:
    """Quick, on the event loop."""
    await asyncio.sleep(0.05)
    return {"greeting": f"Hello {name}"}


@app.task(name="demo.report", queue="reports")
async def report(ctx: Context, pages: int) -> dict[str, int]:
    """Slow, with progress."""
    for page in range(1, pages + 1):
        await asyncio.sleep(0.25)
        ctx.progress(100 * page / pages, f"page {page} of {pages}")
    ctx.log(f"rendered {pages} pages")
    return {"pages": pages}


@app.task(
    name="demo.flaky", queue="demo", max_attempts=4, backoff=Backoff(base=0.4, factor=2, cap=2, jitter=0.1)
)
async def flaky(ctx: Context, city: str) -> dict[str, Any]:
    """Fails twice, then succeeds: retried with backoff."""
    ctx.log(f"asking the weather service for {city}")
    await asyncio.sleep(0.1)
    if ctx.attempt < 3:
        ctx.log("no answer, retrying", level="warning")
        raise ConnectionError(f"the weather service for {city} closed the connection")
    ctx.log("21 degrees")
    return {"city": city, "degrees": 21}


@app.task(
    name="demo.failing", queue="mail", max_attempts=2, backoff=Backoff(base=0.3, factor=1, cap=1, jitter=0)
)
async def failing(ctx: Context, order: int, address: str = "") -> dict[str, Any]:
    """Fails until it is retried with an address in its payload."""
    ctx.log(f"order {order} loaded")
    if not address:
        raise ValueError(f"order {order} has no address")
    return {"order": order, "sent_to": address}


@app.task(name="demo.contact", queue="crm", limit=Limit(running=2, rate="3/s", burst=2))
async def contact(number: int) -> int:
    """Calls an API with a quota: two at once, three a second, over all workers and tenants."""
    await asyncio.sleep(0.5)
    return number


@app.task(name="demo.account", queue="crm", concurrency_key="demo.account:{account}")
async def account(account: int, change: int) -> int:
    """One at a time for each account, in order."""
    await asyncio.sleep(0.8)
    return change


@app.task(name="demo.draw", queue="reports", price=4)
async def draw(ctx: Context, prompt: str) -> str:
    """Costs money, up to the budget of its tenant."""
    await asyncio.sleep(0.3)
    ctx.cost(cents=3)
    return f"a picture of {prompt}"


@app.task(name="demo.reminder", queue="mail")
async def reminder(text: str) -> str:
    """Enqueued with a delay."""
    return text


@app.task(name="demo.primes", queue="reports", executor="process", timeout=30)
def primes(below: int) -> dict[str, int]:
    """CPU-heavy: runs in a process of its own."""
    sieve = bytearray([1]) * below
    sieve[:2] = b"\0\0"
    for n in range(2, int(below**0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, below, n)))
    return {"below": below, "primes": sum(sieve)}


@app.task(name="demo.fingerprint", queue="demo")
def fingerprint(text: str) -> str:
    """A plain function: runs in a thread."""
    return hashlib.pbkdf2_hmac("sha256", text.encode(), b"demo", 150_000).hex()[:16]


@app.task(name="demo.refresh", queue="demo")
async def refresh(page: str) -> str:
    """Enqueued with an idempotency key: while one is live, enqueueing again returns the same job."""
    await asyncio.sleep(1.5)
    return page


@app.task(name="demo.sweep", queue="demo", auto_remove=True)
async def sweep() -> None:
    """Deleted when it succeeds."""


@app.every("3s", name="demo.heartbeat", queue="demo", overlap="skip")
async def heartbeat() -> None:
    """Recurring, by interval: enqueued by its schedule."""


@app.cron("0 8 * * 1-5", timezone="America/New_York", name="demo.digest", queue="demo")
async def digest() -> str:
    """Recurring, by cron expression: weekday mornings in New York, across clock changes."""
    return "nothing new"


@app.task(name="demo.newsletter", queue="mail")
async def newsletter(subscribers: int) -> None:
    """Cancels itself, because there is nothing to do."""
    if not subscribers:
        raise Cancel("no subscribers")
