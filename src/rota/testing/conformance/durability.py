"""Durability: what a store has acknowledged is there after the process, or the server, is killed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...model import Job, JobFilter, PageRequest, Settlement, State
from ...store.calls import settle
from ...store.protocol import Store
from .audit import line, lines
from .factories import ERROR, T0, add, at, change, found, new, record, running
from .firing import firing
from .host import StoreHost, child
from .rules import keeps
from .schedules import kept, rule, stored

MANY = 60
READ = 20  # acknowledgements after which the process is killed


def whole(job: Job) -> Settlement:
    """A settlement with everything that belongs together: state, record, follow-up job, audit entry."""
    return change(
        job,
        State.FAILED,
        error_json=ERROR,
        record=record(job, "failed", at(1), error_json=ERROR),
        then=(new(parent=job.id, queue="then"),),
        audit=(line("crash.settled", object=f"job:{job.id}"),),
    )


async def parts(store: Store, settlement: Settlement) -> tuple[bool, bool, bool, bool]:
    """Which parts of the settlement are in the store: state, record, follow-up job, audit entry."""
    job = await found(store, settlement.id)
    (then,) = settlement.then
    follow_ups = await store.jobs(JobFilter(ids=(then.id,)), PageRequest())
    audited = {entry.object for entry in await lines(store)}
    return (
        job.state is State.FAILED,
        bool(await store.attempts(job.id)),
        bool(follow_ups.items),
        f"job:{job.id}" in audited,
    )


async def acknowledged(host: StoreHost, action: str, **given: Any) -> Sequence[str]:
    """What a child process reported as stored before it was killed in the middle of its work."""
    async with child(host, action, **given) as process:
        reported = [await process.line() for _ in range(READ)]
        return reported + await process.kill()


class DurabilityRules:
    """Each acknowledgement outlives its process. ``host`` is the fixture: see ``StoreHost``."""

    @keeps(17)
    async def test_acknowledged_inserts_survive_a_kill(self, store: Store, host: StoreHost) -> None:
        jobs = [new() for _ in range(MANY)]
        for id in await acknowledged(host, "acknowledge_inserts", jobs=jobs):
            assert (await found(store, id)).state is State.QUEUED

    @keeps(17)
    async def test_acknowledged_settlements_survive_a_kill_whole(self, store: Store, host: StoreHost) -> None:
        settlements = {one.id: one for one in [whole(await running(store)) for _ in range(MANY)]}
        ids = await acknowledged(host, "acknowledge_settlements", settlements=list(settlements.values()))
        for id in ids:
            assert await parts(store, settlements[id]) == (True, True, True, True)

    @keeps(17)
    async def test_acknowledged_fires_survive_a_kill(self, store: Store, host: StoreHost) -> None:
        schedules = await stored(store, *[rule(f"s{n}") for n in range(MANY)])
        firings = {schedule.id: firing(schedule) for schedule in schedules}
        for id in await acknowledged(host, "acknowledge_fires", firings=list(firings.values())):
            assert (await kept(store, id)).version == 2
            assert (await found(store, firings[id].jobs[0].id)).state is State.QUEUED

    @keeps(17)
    async def test_acknowledged_schedules_survive_a_kill(self, store: Store, host: StoreHost) -> None:
        schedules = [rule(f"s{n}") for n in range(MANY)]
        for id in await acknowledged(host, "acknowledge_schedules", schedules=schedules):
            assert (await kept(store, id)).version == 1

    @keeps(17)
    async def test_acknowledged_edits_survive_a_kill(self, store: Store, host: StoreHost) -> None:
        jobs = [new() for _ in range(MANY)]
        await add(store, *jobs)
        for id in await acknowledged(host, "acknowledge_edits", ids=[job.id for job in jobs]):
            assert (await found(store, id)).state is State.CANCELLED

    @keeps(17)
    async def test_acknowledged_documents_survive_a_kill(self, store: Store, host: StoreHost) -> None:
        for key in await acknowledged(host, "acknowledge_documents", count=MANY):
            (document,) = await store.documents("crash", key)
            assert document.version == 1

    @keeps(17)
    async def test_acknowledged_audit_entries_survive_a_kill(self, store: Store, host: StoreHost) -> None:
        entries = [line("crash.audit", object=f"job:{n}") for n in range(MANY)]
        ids = await acknowledged(host, "acknowledge_audit", entries=entries)
        assert set(ids) <= {entry.object for entry in await lines(store)}

    @keeps(17)
    async def test_acknowledged_jobs_survive_a_crash_of_the_server(
        self, store: Store, host: StoreHost
    ) -> None:
        jobs = [new() for _ in range(MANY)]
        settlement = whole(await running(store))
        await add(store, *jobs)
        assert not await settle(store, [settlement], at(1))
        if not host.crash():
            return  # an embedded store has no server: its process is killed in the rules above
        await recovered(store)
        assert await parts(store, settlement) == (True, True, True, True)
        for job in jobs:
            assert (await found(store, job.id)).state is State.QUEUED


async def recovered(store: Store) -> None:
    """Ask until the store answers again: the first calls after a crash may be lost with their connections."""
    from ...errors import StoreUnavailable

    for _ in range(50):
        try:
            await store.jobs(JobFilter(ids=()), PageRequest(limit=1))
            await store.insert([], T0)
            return
        except StoreUnavailable:
            continue
    raise AssertionError("the store did not come back after its server had been started again")
