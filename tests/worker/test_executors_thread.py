"""The thread executor: isolation between jobs, and interruption."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import timedelta

from rota import Context, Rota
from rota.testing import drain

COLOUR: ContextVar[str] = ContextVar("colour", default="none")


async def test_context_variables_of_a_function_are_not_seen_by_the_next(app: Rota) -> None:
    seen = []

    @app.task
    def paint(colour: str) -> None:
        seen.append(COLOUR.get())
        COLOUR.set(colour)

    for colour in ("red", "green", "blue"):
        await paint.enqueue(colour)
    await drain(app, concurrency=1)
    assert seen == ["none"] * 3


async def test_a_thread_past_its_timeout_is_interrupted(app: Rota) -> None:
    @app.task(timeout=timedelta(seconds=0.02), max_attempts=1)
    def endless(ctx: Context) -> None:
        while True:
            ctx.cancelled  # noqa: B018

    job = await endless.enqueue()
    await drain(app)
    assert (await job.refresh()).error["type"] == "Timeout"
