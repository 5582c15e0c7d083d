"""Workers for the dashboard's tests: a real process, and one that stopped responding long ago."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import msgspec

from admin.sites import Site, eventually
from cli.command import rota_command, started

PROGRAM = """
import asyncio
import pathlib

from rota import Rota

app = Rota(poll_interval_ms=50)


@app.task(name="hold", queue="halls")
async def hold(until: str) -> str:
    while not pathlib.Path(until).exists():
        await asyncio.sleep(0.02)
    return "let go"


@app.task(name="quick", queue="halls")
async def quick() -> None: ...
"""


@contextmanager
def at_work(site: Site, folder: Path, *more: str) -> Iterator[str]:
    """A worker in a process of its own; yields its id."""
    (folder / "program.py").write_text(PROGRAM)
    url = site.rota.settings.url
    with started("worker", "--app", "program:app", "--url", url, "--name", "anvil", *more, cwd=folder):
        yield eventually(lambda: next(iter(_live(site)), None), "the worker is listed")


def worked_off(site: Site, folder: Path, jobs: int) -> None:
    """Run a worker in its own process until it has run ``jobs`` jobs and stopped."""
    (folder / "program.py").write_text(PROGRAM)
    ask = ("worker", "--app", "program:app", "--url", site.rota.settings.url, "--max-jobs", f"{jobs}")
    done = rota_command(*ask, "--queues", "halls", cwd=folder)
    assert done.returncode == 0, done.stderr


def _live(site: Site) -> list[str]:
    page = site.do(lambda: site.operations().system.workers())
    return [worker.id for worker in page.items if worker.state == "running"]


def silent(site: Site, id: str, hours: float = 2.0) -> None:
    """What is left of a worker that was killed so long ago, with two jobs in hand."""
    values = {"name": id, "host": "attic", "pid": 77, "state": "running", "concurrency": 4, "running": 2}
    shown = {**values, "queues": ["attic"], "tasks": ["hold"], "finished": 1234, "version": "0.0.9"}

    async def write() -> None:
        then = site.rota.clock.now() - timedelta(hours=hours)
        await (await site.operations().store()).put_document(
            "worker", id, msgspec.json.encode(shown).decode(), None, then
        )

    site.do(write)
