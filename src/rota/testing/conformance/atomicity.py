"""Atomicity: a process that dies at any step of a call leaves each item whole or untouched.

A child process counts the Python calls of one verb, in all of its threads, and then dies at chosen ones:
before, between and after whatever the store sends to its engine. No store needs to be prepared for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...model import State
from ...store.protocol import Store
from .child import BATCH
from .durability import parts, whole
from .factories import add, found, new, read, running
from .firing import firing
from .host import StoreHost, child
from .rules import keeps
from .schedules import kept, rule, stored

DEATHS = 24


async def deaths(host: StoreHost, verb: str, **given: Any) -> Sequence[int]:
    """The exit codes of one process per item: 9 for those that died, 0 for those that came through."""
    async with child(host, "die", verb=verb, count=DEATHS, **given) as process:
        codes = [int(line) for line in await process.done()]
    assert len(codes) == DEATHS and set(codes) <= {0, 9}, codes
    assert codes.count(9) >= DEATHS // 2, f"the processes were to die, and did not: {codes}"
    return codes


class AtomicityRules:
    """State, record, follow-up jobs and audit entries of one item are written together or not at all."""

    @keeps(7)
    async def test_a_settlement_is_whole_wherever_its_process_dies(
        self, store: Store, host: StoreHost
    ) -> None:
        settlements = [whole(await running(store)) for _ in range(DEATHS)]
        codes = await deaths(host, "settle", settlements=settlements)
        for settlement, code in zip(settlements, codes, strict=True):
            written = set(await parts(store, settlement))
            assert len(written) == 1, f"a part is missing: {await parts(store, settlement)}"
            assert written == {True} or code, "it was acknowledged and is gone"

    @keeps(7)
    async def test_a_fire_moves_its_schedule_and_makes_its_jobs_or_does_neither(
        self, store: Store, host: StoreHost
    ) -> None:
        schedules = await stored(store, *[rule(f"s{n}") for n in range(DEATHS)])
        firings = [firing(schedule, new(), new()) for schedule in schedules]
        codes = await deaths(host, "fire", firings=firings)
        for act, code in zip(firings, codes, strict=True):
            moved = (await kept(store, act.schedule.id)).version == 2
            made = [await read(store, job.id) is not None for job in act.jobs]
            assert made == [moved, moved]
            assert moved or code, "it was acknowledged and is gone"

    @keeps(7)
    async def test_an_insert_stores_all_of_its_jobs_or_none(self, store: Store, host: StoreHost) -> None:
        jobs = [new(key=f"k{n}") for n in range(DEATHS * BATCH)]
        codes = await deaths(host, "insert", jobs=jobs)
        for n, code in enumerate(codes):
            there = {await read(store, job.id) is not None for job in jobs[n * BATCH : (n + 1) * BATCH]}
            assert len(there) == 1, f"the insert with exit code {code} is only partly there"
            assert there == {True} or code, "it was acknowledged and is gone"

    @keeps(7)
    async def test_a_claim_takes_a_job_whole_or_leaves_it(self, store: Store, host: StoreHost) -> None:
        jobs = [new(queue=f"q{n}") for n in range(DEATHS)]
        await add(store, *jobs)
        for asked, code in zip(jobs, await deaths(host, "claim"), strict=True):
            job = await found(store, asked.id)
            taken = (State.RUNNING, "dying", 1, 1, True)
            left = (State.QUEUED, None, 0, 0, False)
            now = (job.state, job.worker, job.attempt, job.lease_token, job.lease_until is not None)
            assert now == taken or (now == left and code), (now, code)
