"""The reason an operator gives for cancelling a running job stands in the job's error."""

from __future__ import annotations

import asyncio

import pytest

from rota import JobCancelled, Rota


@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_the_reason_to_cancel_a_running_job_reaches_its_error(app: Rota, executor: str) -> None:
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def on_the_loop() -> None:
        began.set()
        await asyncio.Event().wait()

    def in_a_thread() -> None:
        loop.call_soon_threadsafe(began.set)
        while True:
            pass

    app.task(name="work")(on_the_loop if executor == "async" else in_a_thread)
    job = await app.enqueue("work")
    async with app.running(lease_s=1):
        await began.wait()
        await app.cancel(job.id, "wrong customer")
        with pytest.raises(JobCancelled, match="wrong customer"):
            await job.result(timeout=20)
    assert (await job.refresh()).error["message"] == "wrong customer"
