"""The tasks of rota's adapter, importable by task processes. Only the task in use is declared."""

from __future__ import annotations

import asyncio
import sys

from harness import OPTIONS, URL, noise, ran
from rota import Backoff, Context, Rota

app = Rota(URL if "://" in URL else f"sqlite:///{URL}")


async def plain(i: int, pad: str) -> None:
    ran(i)


def in_thread(i: int, pad: str) -> None:
    ran(i)


def in_process(i: int, pad: str) -> None:
    ran(i)


async def fails_once(ctx: Context, i: int, pad: str) -> None:
    ran(i)
    if i % 5 == 0 and ctx.attempt == 1:
        raise RuntimeError("the first attempt of every fifth job fails")


async def large_output(i: int, pad: str) -> dict[str, str]:
    ran(i)
    return {"data": noise(i, 10_000)}


DECLARE = {
    "plain": lambda: app.task(name="job")(plain),
    "thread": lambda: app.task(name="job")(in_thread),
    "process": lambda: app.task(name="job", executor="process")(in_process),
    "fails_once": lambda: app.task(name="job", backoff=Backoff.none())(fails_once),
    "large_output": lambda: app.task(name="job")(large_output),
}
job = DECLARE[OPTIONS.get("handler", "plain")]()
BEHIND = OPTIONS.get("behind")  # what holds up the jobs of the task "blocked", which are in the way
IS_WORKER = sys.argv[1:2] == ["work"]


async def fill_the_limit(i: int, pad: str) -> None:
    """The one that begins fills the limit of all the others."""
    await asyncio.Event().wait()


if BEHIND and not (BEHIND == "unknown task" and IS_WORKER):
    blocked = app.task(name="blocked")(fill_the_limit)
