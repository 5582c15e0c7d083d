"""Wake-ups: which hints a worker of a fleet follows at once, and which it leaves to the others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from rota import Rota
from rota.testing import FakeClock
from rota.worker.worker import Worker

Until = Callable[..., Awaitable[None]]
NEVER_S = 60.0  # the poll interval of a worker that must be woken
PEERS = 1000


class Shop:
    """A worker on a file, and another program that enqueues into the same file."""

    def __init__(self, file: Path, clock: FakeClock) -> None:
        self.mine, self.other = (Rota(f"sqlite:///{file}", clock=clock) for _ in range(2))
        self.ran: list[int] = []

        @self.mine.task
        async def work(n: int) -> None:
            self.ran.append(n)

    @asynccontextmanager
    async def open(self, until: Until, poll_s: float = NEVER_S, peers: int = PEERS) -> AsyncIterator[Worker]:
        """With an idle worker that takes itself for one of this many."""
        options = {"heartbeat_thread": False, "upkeep": False, "scheduler": False, "poll_s": poll_s}
        await self.mine.stores.root().schema.migrate()
        async with self.mine.running(**options) as worker:
            fleet = worker._environment.fleet
            await until(lambda: worker.is_idle and fleet._read_at > 0)
            fleet.peers = peers
            yield worker
        await self.mine.close()
        await self.other.close()


async def test_a_worker_that_is_not_chosen_leaves_a_job_to_the_others(
    tmp_path: Path, clock: FakeClock, until: Until
) -> None:
    shop = Shop(tmp_path / "rota.db", clock)
    async with shop.open(until) as worker:
        clock.fraction = 0.999
        await shop.other.enqueue("work", {"n": 1})
        await until(lambda: worker._loop._came_late)
        assert shop.ran == []
        clock.fraction = 0.0  # the next one chooses it
        await shop.other.enqueue("work", {"n": 2})
        await until(lambda: len(shop.ran) == 2)


async def test_a_hint_of_its_own_process_wakes_it_at_once(
    tmp_path: Path, clock: FakeClock, until: Until
) -> None:
    shop = Shop(tmp_path / "rota.db", clock)
    async with shop.open(until):
        clock.fraction = 0.999
        await shop.other.enqueue("work", {"n": 1})
        await shop.mine.enqueue("work", {"n": 2})
        await until(lambda: sorted(shop.ran) == [1, 2])


async def test_one_alone_is_woken_at_once(tmp_path: Path, clock: FakeClock, until: Until) -> None:
    shop = Shop(tmp_path / "rota.db", clock)
    async with shop.open(until, peers=1):
        clock.fraction = 0.999
        await shop.other.enqueue("work", {"n": 1})
        await until(lambda: shop.ran == [1])


async def test_a_job_that_nobody_took_is_found_after_a_while(
    tmp_path: Path, clock: FakeClock, until: Until
) -> None:
    """And the worker reads again how many others there are."""
    shop = Shop(tmp_path / "rota.db", clock)
    async with shop.open(until, poll_s=0.2, peers=8) as worker:
        fleet = worker._environment.fleet
        fleet._read_at -= 10
        clock.fraction = 0.999
        await shop.other.enqueue("work", {"n": 1})
        await until(lambda: shop.ran == [1])
        await until(lambda: fleet.peers == 1)


async def test_a_pause_is_followed_by_a_worker_that_had_long_been_idle(
    tmp_path: Path, clock: FakeClock, until: Until
) -> None:
    shop = Shop(tmp_path / "rota.db", clock)
    async with shop.open(until) as worker:
        await shop.other.pause(queue="mail")
        worker._environment.gates._read_at -= 2 * NEVER_S
        await shop.other.enqueue("work", {"n": 1}, queue="mail")
        await shop.other.enqueue("work", {"n": 2})
        await until(lambda: bool(shop.ran))
        assert shop.ran == [2]
