"""The load of the crash tests of limits: which jobs there are, which limits they are under, how these change.

Owns the record of all that it asked the store for, by the clock of this machine. Reads nothing back.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from cluster import Cluster
from limit_check import InForce, LedgerEntry, Waiting

from rota.core.ids import uuid7
from rota.core.jobs.limits import bucket
from rota.errors import IllegalMove
from rota.model import Limit, LimitRule, NewJob

HOT, SMALL = "hot", 1000
QUEUES = ("a", "b")
SERIAL_KEYS = 12
FOREVER = Limit(running=1)  # of the serial keys: never changed
LIMITS: dict[str, tuple[Limit | None, ...]] = {
    "key:account:*": (FOREVER,),
    "queue:a": (Limit(running=7), Limit(running=3), None),
    "queue:b": (Limit(rate="150/s", burst=10), Limit(rate="60/s", burst=5)),
    "task:limited": (Limit(running=12), Limit(running=8, rate="300/s", burst=30), Limit(running=20)),
    "tenant:hot": (Limit(running=5), Limit(running=2), Limit(running=5, rate="200/s", burst=4)),
    "key:api": (Limit(rate="80/s", burst=6), Limit(running=2, rate="80/s", burst=6)),
}


@dataclass
class LimitedLoad:
    cluster: Cluster
    chance: random.Random
    jobs: dict[str, NewJob] = field(default_factory=dict)
    stored_at: dict[str, int] = field(default_factory=dict)
    rules: list[InForce] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)

    # --- jobs --------------------------------------------------------------------------------

    async def enqueue(self, count: int) -> None:
        """Half of the hot tenant, the others of one small tenant after the other."""
        store, now = await self.cluster.store(), self.cluster.app.clock.now()
        new = [self._new(len(self.jobs) + n, now.timestamp()) for n in range(count)]
        jobs = [NewJob(**{**job, "run_at": now}) for job in new]
        await store.insert(jobs, now)
        at = time.time_ns()
        for job in jobs:
            self.jobs[job.id], self.stored_at[job.id] = job, at

    def _new(self, n: int, at: float) -> dict[str, object]:
        is_hot, account = n % 2 == 0, n % SERIAL_KEYS
        key = f"account:{account}" if n % 5 == 1 else "api" if n % 5 == 2 else None
        return {
            "id": uuid7(int(at * 1000), self.chance.getrandbits(60)),
            "task": "limited" if n % 4 else "limited_thread",
            "queue": "a" if n % 5 == 1 else QUEUES[n % 3 == 0],
            # the jobs of an account belong to one tenant: its order is that of the account
            "tenant": f"small-{account}" if n % 5 == 1 else HOT if is_hot else f"small-{n // 2 % SMALL}",
            "priority": self.chance.choice((0, 0, 0, 1)),
            "concurrency_key": key,
            "units": self.chance.randint(1, 3) if key == "api" else None,
            "max_attempts": 100,
            "payload_json": f'{{"ms": {n * 7 % 20}, "fails": {str(n % 11 == 0).lower()}}}',
        }

    async def cancel_some(self, count: int) -> None:
        newest = list(self.jobs)[-20 * count :]
        for job in self.chance.sample(newest, count):
            self.cancelled.add(job)
            with suppress(IllegalMove):  # it has finished
                await self.cluster.app.cancel(job)

    # --- limits ------------------------------------------------------------------------------

    async def set_all(self) -> None:
        for name, choices in LIMITS.items():
            await self.set_limit(name, choices[0])

    async def change_one(self) -> None:
        name = self.chance.choice([name for name, choices in LIMITS.items() if len(choices) > 1])
        await self.set_limit(name, self.chance.choice(LIMITS[name]))

    async def set_limit(self, name: str, limit: Limit | None) -> None:
        store, now = await self.cluster.store(), self.cluster.app.clock.now()
        called = time.time_ns()
        rule = LimitRule(name=name, chosen=limit, version=self.versions.get(name, 0))
        (version,) = await store.put_rules([rule], None)
        assert version is not None, (name, now)
        self.versions[name] = version
        self.rules += self._in_force(name, limit, called, time.time_ns())

    def _in_force(self, name: str, limit: Limit | None, called: int, returned: int) -> Iterator[InForce]:
        rate = None if limit is None else bucket(limit)
        running = None if limit is None else limit.running
        every, burst = (None, 1) if rate is None else (rate.every_ns, rate.burst)
        for one in self._names(name):
            yield InForce(one, called, returned, running, every, burst)

    def _names(self, name: str) -> list[str]:
        """Each key of a family has a limit of its own."""
        return [f"key:account:{n}" for n in range(SERIAL_KEYS)] if name.endswith("*") else [name]

    # --- what the tasks recorded -------------------------------------------------------------

    def ledger(self, died_at: dict[int, int], lease_ns: int) -> list[LedgerEntry]:
        """The executions; one whose process was killed ran until then.

        A job that was rescued while its task ran on, on a machine that was busy for longer than the lease,
        is counted for as long as the lease lasted at least.
        """
        executions = self.cluster.run_log.executions()
        tokens = {(one.job, one.token) for one in executions}
        found = []
        for one in executions:
            ended = died_at.get(one.pid) if one.ended is None else int(one.ended * 1e9)
            if ended is not None and (one.job, one.token + 2) in tokens:
                ended = min(ended, one.claimed_ns + lease_ns)
            job = self.jobs[one.job]
            began = int(one.began * 1e9)
            found.append(
                LedgerEntry(
                    one.job, self._scopes(job), began, ended, one.claimed_ns, job.units or 1, one.token
                )
            )
        return found

    def _scopes(self, job: NewJob) -> tuple[str, ...]:
        key = () if job.concurrency_key is None else (f"key:{job.concurrency_key}",)
        return (f"queue:{job.queue}", f"task:{job.task}", f"tenant:{job.tenant}", *key)

    def serial(self) -> Iterator[Waiting]:
        for job in self.jobs.values():
            if job.concurrency_key is not None and job.concurrency_key.startswith("account:"):
                assert job.run_at is not None
                place = (-job.priority, job.run_at.timestamp(), job.id)
                yield Waiting(job.id, job.concurrency_key, place, self.stored_at[job.id])
