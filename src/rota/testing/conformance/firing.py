"""Firing: schedule and jobs move together, once, with many schedulers; and which schedules are still busy."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from typing import Any

from ...core.jobs import lifecycle
from ...core.schedules.firing import job_id
from ...model import CurrentOverview, Firing, JobFilter, LastRuns, NewJob, PageRequest, Schedule, State
from ...store.calls import claim, edit_matching, settle
from ...store.protocol import Store
from .factories import (
    ERROR,
    FINAL_STATES,
    REACHABLE,
    T0,
    add,
    at,
    change,
    claimed,
    found,
    ids,
    in_state,
    new,
    want,
)
from .rules import keeps
from .schedules import ALL, changed, due, kept, rule, stored

NEXT = at(60)


def run_of(schedule: Schedule, fire_at: datetime = T0, **fields: Any) -> NewJob:
    """The job of one fire."""
    defaults: dict[str, Any] = {"id": job_id(schedule.id, fire_at), "tenant": schedule.tenant}
    origin: dict[str, Any] = {"origin": "scheduler", "schedule": schedule.name, "scheduled_for": fire_at}
    return new(**(defaults | origin | fields))


def firing(schedule: Schedule, *jobs: NewJob, **fields: Any) -> Firing:
    """The schedule moves on by a minute, and makes the jobs (else the one of T0)."""
    after = changed(schedule, **({"next_run_at": NEXT, "check_at": NEXT, "last_fire_at": T0} | fields))
    return Firing(schedule=after, expected=schedule.version, jobs=jobs or (run_of(schedule),))


async def made(store: Store, **where: Any) -> list[str]:
    """The ids of the jobs that schedules have made, oldest first."""
    page = await store.jobs(
        JobFilter(from_schedule=True, **where), PageRequest(limit=1000, newest_first=False)
    )
    return ids(page.items)


async def busy(store: Store, *pairs: tuple[str, str]) -> set[tuple[str, str]]:
    """Those of the (tenant, name) pairs that have a live job, as seen when all of them are due."""
    for tenant, name in pairs:  # one that exists already is rejected, and stays
        await store.put_schedules([rule(name, tenant=tenant, overlap="skip")], T0)
    due = await store.due_schedules(T0, 50)
    return {(one.tenant, one.name) for one in due.schedules if one.id in due.busy}


class FiringRules:
    # --- firing ----------------------------------------------------------------------------------

    @keeps(8)
    async def test_a_fire_moves_the_schedule_and_makes_its_job(self, store: Store) -> None:
        (schedule,) = await stored(store, rule())
        act = firing(schedule, run_of(schedule, payload_json="[1]", queue="mail", priority=3, tags=("a",)))
        assert await store.fire([act], at(1)) == frozenset()
        assert await kept(store, schedule.id) == changed(act.schedule, version=2, updated_at=at(1))
        job = await found(store, act.jobs[0].id)
        assert (job.state, job.queue, job.priority, job.tags) == (State.QUEUED, "mail", 3, ("a",))
        assert (job.schedule, job.scheduled_for, job.origin) == ("nightly", T0, "scheduler")
        assert (job.payload_json, job.run_at, job.created_at) == ("[1]", at(1), at(1))
        assert (await store.due_schedules(at(1), 5)).next_check_at == NEXT

    @keeps(8)
    async def test_a_fired_job_can_be_claimed_at_once(self, store: Store) -> None:
        (schedule,) = await stored(store, rule())
        act = firing(schedule)
        await store.fire([act], at(1))
        assert (await claimed(store, act.jobs[0].id, at(1))).schedule == "nightly"

    @keeps(8)
    async def test_a_fire_may_make_many_jobs_or_none(self, store: Store) -> None:
        many, none = await stored(store, rule("many"), rule("none"))
        jobs = [run_of(many, at(-n), origin="catchup") for n in range(9)]
        quiet = Firing(schedule=changed(none, check_at=NEXT), expected=1)
        assert await store.fire([firing(many, *jobs), quiet], T0) == frozenset()
        assert set(await made(store)) == {job.id for job in jobs}
        assert await due(store) == []

    @keeps(8)
    async def test_a_second_fire_of_the_same_version_is_refused(self, store: Store) -> None:
        (schedule,) = await stored(store, rule())
        first, second = firing(schedule), firing(schedule, run_of(schedule, at(1)), check_at=at(999))
        assert await store.fire([first], T0) == frozenset()
        assert await store.fire([second], T0) == {schedule.id}
        assert await made(store) == [first.jobs[0].id]
        assert (await kept(store, schedule.id)).check_at == NEXT

    @keeps(8)
    async def test_a_schedule_edited_meanwhile_does_not_fire(self, store: Store) -> None:
        (schedule,) = await stored(store, rule())
        await stored(store, changed(schedule, description="edited"))
        assert await store.fire([firing(schedule)], T0) == {schedule.id}
        assert await made(store) == []
        assert (await kept(store, schedule.id)).description == "edited"

    @keeps(8)
    async def test_a_schedule_disabled_meanwhile_does_not_fire(self, store: Store) -> None:
        (schedule,) = await stored(store, rule())
        (off,) = await stored(store, changed(schedule, enabled=False, reason="stop"))
        assert await store.fire([firing(schedule)], T0) == {schedule.id}
        assert await store.fire([firing(off, enabled=True)], T0) == {schedule.id}
        assert await made(store) == []
        assert await kept(store, schedule.id) == off

    @keeps(8)
    async def test_a_dropped_schedule_does_not_fire(self, store: Store) -> None:
        (schedule,) = await stored(store, rule())
        await store.delete_schedules([schedule.id])
        assert await store.fire([firing(schedule)], T0) == {schedule.id}
        assert await made(store) == []
        assert list((await store.schedules(ALL, PageRequest())).items) == []

    @keeps(8)
    async def test_a_fire_may_disable_its_schedule(self, store: Store) -> None:
        (schedule,) = await stored(store, rule())
        off = changed(schedule, enabled=False, reason="cron='x': is no rule", check_at=None)
        assert await store.fire([Firing(schedule=off, expected=1)], T0) == frozenset()
        assert (await kept(store, schedule.id)).reason == "cron='x': is no rule"
        assert await due(store, at(999)) == []

    @keeps(8)
    async def test_a_refused_fire_harms_no_other_of_its_batch(self, store: Store) -> None:
        schedules = await stored(store, *[rule(f"s{n}") for n in range(6)])
        await stored(store, changed(schedules[1], description="edited"))
        await store.delete_schedules([schedules[4].id])
        refused = await store.fire([firing(schedule) for schedule in schedules], T0)
        assert refused == {schedules[1].id, schedules[4].id}
        fired = [schedules[n] for n in (0, 2, 3, 5)]
        assert set(await made(store)) == {job_id(schedule.id, T0) for schedule in fired}
        assert await due(store) == ["s1"]

    @keeps(8)
    async def test_nothing_to_fire_is_no_error(self, store: Store) -> None:
        assert await store.fire([], T0) == frozenset()

    @keeps(8)
    async def test_a_job_that_exists_in_any_state_is_left_out(self, store: Store) -> None:
        for state in REACHABLE:
            (schedule,) = await stored(store, rule(state.value))
            there, fresh = run_of(schedule, queue=state.value), run_of(schedule, at(-60), queue="fresh")
            await in_state(store, state, id=there.id, queue=there.queue, schedule=schedule.name)
            before = await found(store, there.id)
            assert await store.fire([firing(schedule, there, fresh)], at(5)) == frozenset()
            assert await found(store, there.id) == before
            assert set(await made(store, schedule=schedule.name)) == {there.id, fresh.id}
            assert (await kept(store, schedule.id)).version == 2

    @keeps(8)
    async def test_an_old_version_written_back_makes_no_job_twice(self, store: Store) -> None:
        """As after a restored backup: the schedule goes back in time, its jobs do not."""
        (schedule,) = await stored(store, rule())
        await store.fire([firing(schedule)], T0)
        (back,) = await stored(store, changed(schedule, version=2))
        assert await store.fire([firing(back)], at(1)) == frozenset()
        assert await made(store) == [job_id(schedule.id, T0)]

    # --- many schedulers -------------------------------------------------------------------------

    @keeps(8)
    async def test_concurrent_schedulers_fire_each_schedule_exactly_once(self, store: Store) -> None:
        schedules = await stored(store, *[rule(f"s{n:03}", check_at=at(n % 7)) for n in range(200)])
        fired: Counter[str] = Counter()

        async def scheduler(limit: int) -> None:
            while batch := (await store.due_schedules(at(7), limit)).schedules:
                acts = [firing(schedule) for schedule in batch]
                refused = await store.fire(acts, at(7))
                fired.update(act.schedule.id for act in acts if act.schedule.id not in refused)

        await asyncio.gather(*[scheduler(13 + n) for n in range(8)])
        assert fired == Counter(schedule.id for schedule in schedules)
        assert sorted(await made(store)) == sorted(job_id(schedule.id, T0) for schedule in schedules)
        assert (await store.survey(CurrentOverview(at(7)))).counts["queued"] == 200

    @keeps(8)
    async def test_batches_in_opposite_orders_do_not_block_each_other(self, store: Store) -> None:
        schedules = await stored(store, *[rule(f"s{n:02}") for n in range(40)])
        orders = [schedules, schedules[::-1], schedules[20:] + schedules[:20], schedules[::-1]]
        answers = await asyncio.gather(*[store.fire([firing(s) for s in order], T0) for order in orders])
        refusals = Counter(schedule for refused in answers for schedule in refused)
        assert all(refusals[schedule.id] >= 3 for schedule in schedules)
        while batch := (await store.due_schedules(T0, 50)).schedules:  # locked by one, refused by all
            await store.fire([firing(schedule) for schedule in batch], T0)
        assert len(await made(store)) == 40
        assert {(await kept(store, schedule.id)).version for schedule in schedules} == {2}

    @keeps(8)
    async def test_a_fire_and_a_disable_at_once_agree_on_who_was_first(self, store: Store) -> None:
        for n in range(20):
            (schedule,) = await stored(store, rule(f"s{n}"))
            refused, (version,) = await asyncio.gather(
                store.fire([firing(schedule)], T0),
                store.put_schedules([changed(schedule, enabled=False)], T0),
            )
            fired = not refused
            assert fired is (version is None)
            assert fired is bool(await made(store, schedule=schedule.name))
            assert fired is (await kept(store, schedule.id)).enabled

    # --- busy ------------------------------------------------------------------------------------

    @keeps(8)
    async def test_a_schedule_is_busy_while_it_has_a_live_job(self, store: Store) -> None:
        job = new(schedule="s")
        await add(store, job)
        assert await busy(store, ("default", "s")) == {("default", "s")}
        ran = await claimed(store, job.id)
        assert await busy(store, ("default", "s")) == {("default", "s")}
        await settle(store, [change(ran, State.QUEUED, run_at=at(900))], at(1))
        assert await busy(store, ("default", "s")) == {("default", "s")}

    @keeps(8)
    async def test_a_schedule_whose_jobs_have_ended_is_not_busy(self, store: Store) -> None:
        for state in FINAL_STATES:
            await in_state(store, state, schedule="s")
        assert await busy(store, ("default", "s")) == set()

    @keeps(8)
    async def test_a_cancelled_or_deleted_job_keeps_no_schedule_busy(self, store: Store) -> None:
        await add(store, new(schedule="a"), new(schedule="b"))
        await edit_matching(store, JobFilter(schedule="a"), lifecycle.cancel("no", T0), 5, T0)
        await edit_matching(store, JobFilter(schedule="b"), lifecycle.delete(), 5, T0)
        assert await busy(store, ("default", "a"), ("default", "b")) == set()

    @keeps(8)
    async def test_a_retried_job_makes_its_schedule_busy_again(self, store: Store) -> None:
        job = await in_state(store, State.FAILED, schedule="s")
        await store.edit((job,), lifecycle.retry(at(2)), at(2))
        assert await busy(store, ("default", "s")) == {("default", "s")}

    @keeps(8)
    async def test_schedules_of_different_tenants_are_separate(self, store: Store) -> None:
        await add(store, new(schedule="s", tenant="a"), new(schedule="t", tenant="b"), new())
        asked = [("a", "s"), ("b", "s"), ("a", "t"), ("b", "t"), ("default", "s"), ("a", "s")]
        assert await busy(store, *asked) == {("a", "s"), ("b", "t")}

    # --- runs ------------------------------------------------------------------------------------

    @keeps(8)
    async def test_last_runs_are_the_newest_jobs_of_each_schedule(self, store: Store) -> None:
        newest = []
        for state in REACHABLE:
            await add(store, new(schedule=state.value))
            newest.append(await in_state(store, state, schedule=state.value, queue=state.value))
        await add(store, other := new(schedule=REACHABLE[0].value, tenant="x"), new())
        wanted = [("default", state.value) for state in REACHABLE]
        found_ids = {
            job.id
            for job in await store.survey(LastRuns([*wanted, ("x", REACHABLE[0].value), ("x", "never")]))
        }
        assert found_ids == {*newest, other.id}
        assert not await store.survey(LastRuns([]))

    @keeps(8)
    async def test_runs_are_listed_apart_from_other_jobs(self, store: Store) -> None:
        ended = [await in_state(store, state, schedule="s", queue=state.value) for state in REACHABLE]
        await add(store, new(), other := new(schedule="t", tenant="x"))
        newest = await store.jobs(JobFilter(from_schedule=True), PageRequest(limit=4))
        assert ids(newest.items) == [other.id, *ended[:1:-1]]
        rest = await store.jobs(JobFilter(from_schedule=True), PageRequest(limit=4, cursor=newest.next))
        assert ids(rest.items) == ended[1::-1]
        assert await made(store, schedule="s") == ended
        assert await made(store, schedule="s", tenant="x") == []
        assert await made(store, tenant="x") == [other.id]
        for state, job in zip(REACHABLE, ended, strict=True):
            assert await made(store, schedule="s", states=(state,)) == [job]
            assert await made(store, states=(state,), tenant="default") == [job]
        assert len((await store.jobs(JobFilter(), PageRequest())).items) == 7

    @keeps(8)
    async def test_an_edit_of_scheduled_jobs_leaves_the_others_alone(self, store: Store) -> None:
        await add(store, plain := new(), run := new(schedule="s"), other := new(schedule="s", tenant="x"))
        cancel = lifecycle.cancel("no", T0)
        live = (State.WAITING, State.QUEUED, State.RUNNING)
        where = JobFilter(schedule="s", tenant="default", states=live)
        assert list(await edit_matching(store, where, cancel, 9, T0)) == [run.id]
        assert list(await edit_matching(store, JobFilter(from_schedule=True), cancel, 9, T0)) == [other.id]
        assert (await found(store, plain.id)).state is State.QUEUED

    @keeps(8)
    async def test_the_overview_counts_fired_jobs_like_any_other(self, store: Store) -> None:
        (schedule,) = await stored(store, rule())
        await store.fire([firing(schedule)], T0)
        overview = await store.survey(CurrentOverview(at(5)))
        assert (overview.counts["queued"], overview.queues["default"].oldest_due_s) == (1, 5)
        (job,) = await claim(store, want(), at(5))
        await settle(store, [change(job, State.FAILED, error_json=ERROR)], at(6))
        assert (await store.survey(CurrentOverview(at(6)))).counts["queued"] == 0
        assert await made(store, states=(State.FAILED,)) == [job.id]
