"""The tasks of chancy's adapter: chancy imports a job's function by its module path."""

from __future__ import annotations

from chancy import job

from harness import ran


@job(queue="default")
async def plain(*, i: int, pad: str):
    ran(i)


@job(queue="default")
def in_thread(*, i: int, pad: str):
    ran(i)
