"""Gates between processes: one program pauses and resumes, ``rota worker`` in another follows them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli.command import make_shop, rota_command, started
from rota import JobHandle, Rota

Until = Callable[..., Awaitable[None]]
ADD = {"a": 1, "b": 2}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make_shop(tmp_path)


@pytest.fixture
def worker(app: Rota, shop: Path, app_url: str) -> Iterator[None]:
    with started("worker", "--app", "shop:app", "--url", app_url, cwd=shop):
        yield


async def states(app: Rota) -> list[str]:
    documents = await (await app.stores.get()).documents("worker")
    return [msgspec.json.decode(document.body)["state"] for document in documents]


class Switch:
    """Pauses, and waits until the worker knows: it says of itself when everything is paused."""

    def __init__(self, app: Rota, until: Until) -> None:
        self.app, self.until = app, until

    async def pause(self, **what: Any) -> None:
        await self.app.pause(**what)
        await self.app.pause(reason="so that the worker shows that it has looked")
        await self._reaches("paused")
        await self.app.resume()
        await self._reaches("running")

    async def _reaches(self, state: str) -> None:
        async def reached() -> bool:
            return await states(self.app) == [state]

        await self.until(reached)


async def is_queued(job: JobHandle) -> bool:
    return (await job.refresh()).state == "queued"


@pytest.mark.usefixtures("worker")
async def test_a_worker_obeys_pauses_of_queue_task_and_tenant(app: Rota, until: Until) -> None:
    switch = Switch(app, until)
    everything: dict[str, dict[str, Any]] = {
        "queue": {"queue": "mail"}, "task": {"task": "add"}, "tenant": {"tenant": "acme"},
    }  # fmt: skip
    for what in everything.values():
        await switch.pause(**what, reason="provider down")
        held = await app.enqueue("add", ADD, queue="mail", tenant="acme")
        free = await app.enqueue("nap", {"seconds": 0})
        assert await free.result(timeout=20) == "rested"
        assert await is_queued(held)
        await app.resume(**what)
        assert await held.result(timeout=20) == 3


@pytest.mark.usefixtures("worker")
async def test_while_everything_is_paused_running_jobs_finish_and_none_starts(
    app: Rota, until: Until
) -> None:
    nap = await app.enqueue("nap", {"seconds": 3})

    async def runs() -> bool:
        return (await nap.refresh()).state == "running"

    async def is_paused() -> bool:
        return await states(app) == ["paused"]

    await until(runs)
    await app.pause(reason="offline")
    await until(is_paused)
    held = await app.enqueue("add", ADD)
    assert await nap.result(timeout=20) == "rested"
    assert await is_queued(held)
    await app.resume()
    assert await held.result(timeout=20) == 3


@pytest.mark.usefixtures("worker")
async def test_a_pause_ends_at_its_end_time(app: Rota, until: Until) -> None:
    await Switch(app, until).pause(queue="mail", until=app.clock.now() + timedelta(seconds=6))
    held = await app.enqueue("add", ADD, queue="mail")
    assert await held.result(timeout=20) == 3
    (gate,) = await (await app.stores.get()).documents("gate")
    until_at = msgspec.convert(msgspec.json.decode(gate.body)["until_at"], type=type(app.clock.now()))
    done = await held.refresh()
    assert done.started_at is not None and done.started_at >= until_at - timedelta(seconds=0.2)


@pytest.mark.usefixtures("worker")
async def test_a_paused_schedule_creates_no_jobs_until_resumed(app: Rota, until: Until) -> None:
    await app.schedules.create(name="secondly", task="nap", every=1, payload={"seconds": 0}, missed="skip")

    async def fires() -> int:
        return len((await app.jobs(task="nap", limit=200)).items)

    async def has_fired() -> bool:
        return await fires() > 0

    async def is_held() -> bool:
        found = await app.schedules.get("secondly")
        return bool(found.check_at and found.next_run_at and found.check_at > found.next_run_at)

    await until(has_fired)
    await app.pause(schedule="secondly")
    await until(is_held)
    before = await fires()
    held = await app.schedules.get("secondly")
    await app.resume(schedule="secondly")

    async def has_fired_again() -> bool:
        return await fires() > before

    await until(has_fired_again)
    after = await app.schedules.get("secondly")
    assert held.next_run_at and after.last_fire_at and after.last_fire_at >= held.next_run_at


async def test_a_burst_with_everything_paused_ends(app: Rota, shop: Path, app_url: str) -> None:
    held = await app.enqueue("add", ADD)
    await app.pause(reason="offline")
    done = rota_command("worker", "--app", "shop:app", "--url", app_url, "--burst", cwd=shop)
    assert done.returncode == 0
    assert await is_queued(held)
