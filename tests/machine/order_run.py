"""The order that claims keep beside pauses, full keys and workers that know only some tasks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count

from rota.model import Job, NewJob
from rota.store.calls import claim
from rota.store.protocol import Store
from rota.testing.conformance.factories import at, finish, new, want

STEPS = 60


class OrderRun:
    """One run on a queue of its own; needs the limit ``key:*`` with one running job."""

    def __init__(self, store: Store, seed: int, *, some_tasks: bool) -> None:
        self.store, self.seed, self.some_tasks = store, seed, some_tasks
        self.chance = random.Random(seed)
        self.queue = f"order-{seed}"
        self.tenants = [f"t{seed}-{n}" for n in range(self.chance.choice([1, 2, 3]))]
        self.tasks = ["x", "y", "z"][: self.chance.choice([1, 2, 3])]
        self.keyed = self.chance.random() < 0.7
        self.clock = count(1)
        self.now = 0
        self.waiting: dict[str, NewJob] = {}
        self.stored_at: dict[str, int] = {}
        self.running: list[Job] = []

    async def check(self) -> None:
        for _ in range(STEPS):
            self.now = next(self.clock)
            chosen = self.chance.random()
            if chosen < 0.3:
                await self._enqueue()
            elif chosen < 0.45:
                await self._finish(self.chance.choice([1, 2, 10]))
            else:
                await self._claim()
        await self._check_all_run()

    async def _enqueue(self) -> None:
        jobs = [self._job() for _ in range(self.chance.choice([1, 3, 20, 60]))]
        self.chance.shuffle(jobs)
        await self.store.insert(jobs, at(self.now))
        self.waiting |= {job.id: job for job in jobs}
        self.stored_at |= {job.id: self.now for job in jobs}

    def _job(self) -> NewJob:
        chance = self.chance
        key = f"{self.queue}-{chance.randrange(4)}" if self.keyed and chance.random() < 0.5 else None
        return new(
            queue=self.queue,
            tenant=chance.choice(self.tenants),
            task=chance.choice(self.tasks),
            priority=chance.choice([0, 0, 1, 2]),
            concurrency_key=key,
        )

    async def _finish(self, most: int) -> None:
        ended = [
            self.running.pop(self.chance.randrange(len(self.running)))
            for _ in range(min(most, len(self.running)))
        ]
        await finish(self.store, *ended, now=at(self.now))

    async def _claim(self) -> None:
        chance = self.chance
        paused = [one for one in self.tenants if chance.random() < 0.3] if chance.random() < 0.5 else []
        known = None
        if self.some_tasks and chance.random() < 0.3:
            known = tuple(one for one in self.tasks if chance.random() < 0.7) or None
        limit = chance.choice([1, 2, 5, 10, 40])
        request = want(limit, queues=(self.queue,), exclude_tenants=tuple(paused), tasks=known)
        jobs = await claim(self.store, request, at(self.now))
        begun = [self.waiting.pop(job.id) for job in jobs]
        self.running += jobs
        assert not {job.tenant for job in begun} & set(paused)
        assert known is None or {job.task for job in begun} <= set(known)
        self._check_order(begun, known)
        keys = [job.concurrency_key for job in self.running if job.concurrency_key is not None]
        assert len(keys) == len(set(keys)), "two jobs of a key run"

    def _check_order(self, begun: Sequence[NewJob], known: tuple[str, ...] | None) -> None:
        """None was left that comes before one of its tenant, or of its tenant and key."""
        first: dict[tuple[str, str | None], NewJob] = {}
        for job in sorted(self.waiting.values(), key=self._place):
            if known is None or job.task in known:
                first.setdefault((job.tenant, job.concurrency_key), job)
        for job in begun:
            left = first.get((job.tenant, job.concurrency_key))
            assert left is None or self._place(job) < self._place(left), f"{job} began before {left}"

    def _place(self, job: NewJob) -> tuple[int, int, str]:
        return -job.priority, self.stored_at[job.id], job.id

    async def _check_all_run(self) -> None:
        empty = 0
        while self.waiting and empty < 100:
            self.now = next(self.clock)
            await self._finish(len(self.running))
            found = await self.store.turn([], want(40, queues=(self.queue,)), at(self.now))
            self.running = list(found.jobs)
            for job in self.running:
                del self.waiting[job.id]
            empty = 0 if self.running else empty + 1
        assert not self.waiting, "these never began"
