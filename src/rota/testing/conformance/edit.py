"""Operators' edits: each verb on each state, nothing beyond the states it names, never beyond its limit."""

from __future__ import annotations

from typing import Any

from ...core.jobs import lifecycle
from ...model import CurrentOverview, Edit, JobFilter, JobId, State
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
    read,
    record,
    running,
    want,
)
from .rules import keeps

VERBS = (
    lifecycle.cancel("stop", at(5)),
    lifecycle.retry(at(5)),
    lifecycle.move(run_at=at(50)),
    lifecycle.delete(),
)


class EditRules:
    @keeps(9)
    async def test_a_verb_touches_the_states_it_names_and_no_other(self, store: Store) -> None:
        for verb in VERBS:
            for state in REACHABLE:
                job = await in_state(store, state)
                before = await found(store, job)
                touched = list(await store.edit((job,), verb, at(5)))
                assert touched == ([job] if state in verb.touches else []), (verb.verb, state)
                if state not in verb.touches:
                    assert await found(store, job) == before
                await self._clear(store, job)

    @keeps(9)
    async def test_cancel_ends_a_waiting_job_at_once(self, store: Store) -> None:
        job = await in_state(store, State.QUEUED)
        edit = lifecycle.cancel("changed my mind", at(5))
        await store.edit((job,), edit, at(5))
        kept = await found(store, job)
        assert (kept.state, kept.finished_at, kept.error_json) == (State.CANCELLED, at(5), edit.error_json)
        assert list(await claim(store, want(), at(10))) == []

    @keeps(9)
    async def test_cancel_asks_a_running_job_to_stop(self, store: Store) -> None:
        job = await running(store)
        await store.edit((job.id,), lifecycle.cancel("stop", at(5)), at(5))
        kept = await found(store, job.id)
        assert (kept.state, kept.cancel_requested, kept.lease_token) == (State.RUNNING, True, job.lease_token)

    @keeps(9)
    async def test_a_job_that_was_asked_to_stop_may_still_succeed(self, store: Store) -> None:
        job = await running(store)
        await store.edit((job.id,), lifecycle.cancel("stop", at(5)), at(5))
        assert await settle(store, [change(job, State.SUCCEEDED)], at(6)) == frozenset()
        assert (await found(store, job.id)).state is State.SUCCEEDED

    @keeps(9)
    async def test_an_asked_cancel_is_not_lost_when_the_attempt_goes_back(self, store: Store) -> None:
        job = await running(store)
        await store.edit((job.id,), lifecycle.cancel("stop", at(5)), at(5))
        await settle(store, [change(job, State.QUEUED, error_json=ERROR)], at(6))
        assert (await claimed(store, job.id, at(7))).cancel_requested is True

    @keeps(9)
    async def test_retry_gives_an_ended_job_a_new_life(self, store: Store) -> None:
        for state in FINAL_STATES:
            job = await running(store, payload_json="[1]")
            await settle(store, [change(job, state, error_json=ERROR, crashes=3)], at(1))
            await store.edit((job.id,), lifecycle.retry(at(5)), at(5))
            kept = await found(store, job.id)
            assert (kept.state, kept.attempt, kept.crashes) == (State.QUEUED, 0, 0)
            assert kept.run_at == at(5)
            assert (kept.error_json, kept.finished_at, kept.payload_json) == (ERROR, None, "[1]")
            again = await claimed(store, job.id, at(6))
            assert (again.attempt, again.lease_token, again.cancel_requested) == (1, 2, False)

    @keeps(9)
    async def test_a_silent_success_is_remembered_when_the_job_is_run_again(self, store: Store) -> None:
        job = await running(store)
        await settle(store, [change(job, State.SUCCEEDED)], at(1))
        assert list(await store.attempts(job.id)) == []
        for life in (2, 3):
            await store.edit((job.id,), lifecycle.retry(at(life)), at(life))
            (kept,) = await store.attempts(job.id)
            assert (kept.lease_token, kept.attempt, kept.outcome) == (1, 1, "succeeded")
            assert (kept.worker, kept.finished_at) == ("w1", at(1))
            again = await claimed(store, job.id, at(life))
            await settle(store, [change(again, State.FAILED)], at(life))

    @keeps(9)
    async def test_the_token_grows_through_every_life(self, store: Store) -> None:
        job = await running(store)
        for life in range(2, 6):
            await settle(store, [change(job, State.FAILED)], at(life))
            await store.edit((job.id,), lifecycle.retry(at(life)), at(life))
            first = await claimed(store, job.id, at(life))
            assert first.lease_token > job.lease_token
            job = first

    @keeps(9)
    async def test_a_worker_of_a_former_life_is_refused(self, store: Store) -> None:
        old = await running(store)
        (taken,) = await store.reclaim("w2", 30, 10, at(100))
        await settle(store, [change(taken, State.FAILED, worker="w2")], at(101))
        await store.edit((old.id,), lifecycle.retry(at(102)), at(102))
        await claimed(store, old.id, at(103))
        assert await settle(store, [change(old, State.SUCCEEDED)], at(104)) == {old.id}

    @keeps(9)
    async def test_a_cancelled_job_can_be_retried_without_being_asked_to_stop(self, store: Store) -> None:
        job = await running(store)
        await store.edit((job.id,), lifecycle.cancel("stop", at(1)), at(1))
        await settle(store, [change(job, State.CANCELLED)], at(2))
        await store.edit((job.id,), lifecycle.retry(at(3)), at(3))
        assert (await claimed(store, job.id, at(4))).cancel_requested is False

    @keeps(9)
    async def test_move_changes_only_what_it_names(self, store: Store) -> None:
        job = await in_state(store, State.QUEUED, priority=1, queue="a")
        steps: list[tuple[Edit, tuple[object, ...]]] = [
            (lifecycle.move(priority=8), (T0, 8, "a")),
            (lifecycle.move(queue="b"), (T0, 8, "b")),
            (lifecycle.move(run_at=at(50)), (at(50), 8, "b")),
        ]
        for edit, expected in steps:
            assert list(await store.edit((job,), edit, at(5))) == [job]
            kept = await found(store, job)
            assert (kept.run_at, kept.priority, kept.queue) == expected

    @keeps(9)
    async def test_a_moved_job_is_claimed_where_and_when_it_went(self, store: Store) -> None:
        job = await in_state(store, State.QUEUED)
        await store.edit((job,), lifecycle.move(run_at=at(50), queue="b"), T0)
        assert list(await claim(store, want(), at(49))) == []
        assert list(await claim(store, want(queues=("default",)), at(51))) == []
        assert ids(await claim(store, want(queues=("b",)), at(51))) == [job]

    @keeps(9)
    async def test_a_later_job_moved_forward_is_due_at_once(self, store: Store) -> None:
        job = await in_state(store, State.QUEUED, run_at=at(9000))
        assert list(await claim(store, want(), at(1))) == []
        await store.edit((job,), lifecycle.move(run_at=at(1)), at(1))
        assert ids(await claim(store, want(), at(2))) == [job]

    @keeps(9)
    async def test_delete_leaves_nothing(self, store: Store) -> None:
        job = await running(store, key="k")
        await settle(store, [change(job, State.FAILED, record=record(job, "failed", at(1)))], at(1))
        assert list(await store.edit((job.id,), lifecycle.delete(), at(2))) == [job.id]
        assert await read(store, job.id) is None
        assert list(await store.attempts(job.id)) == []

    @keeps(2)
    async def test_deleting_a_waiting_job_frees_its_key(self, store: Store) -> None:
        job = await in_state(store, State.QUEUED, key="k")
        await store.edit((job,), lifecycle.delete(), at(2))
        assert list(await claim(store, want(), at(3))) == []
        assert (await add(store, new(key="k")))[0].outcome == "created"

    @keeps(9)
    async def test_an_edit_touches_no_more_than_its_limit(self, store: Store) -> None:
        for verb in VERBS:
            start = State.FAILED if State.QUEUED not in verb.touches else State.QUEUED
            jobs = [await in_state(store, start) for _ in range(5)]
            filter_ = JobFilter(ids=tuple(jobs), states=(start,))
            touched = list(await edit_matching(store, filter_, verb, 3, at(5)))
            assert len(touched) == 3, verb.verb
            assert set(touched) <= set(jobs)
            await store.edit(tuple(jobs), lifecycle.delete(), at(6))

    @keeps(9)
    async def test_an_edit_touches_only_what_its_filter_names(self, store: Store) -> None:
        parent = new().id
        marks: dict[str, Any] = {
            "task": "t",
            "queue": "q",
            "tenant": "x",
            "key": "k",
            "schedule": "s",
            "parent": parent,
        }
        await add(store, *[new() for _ in range(3)])
        for field, value in marks.items():
            marked = new(**{field: value})
            await add(store, marked)
            touched = await edit_matching(
                store, JobFilter(**{field: value}), lifecycle.cancel("no", T0), 10, T0
            )
            assert list(touched) == [marked.id], field
        tagged = new(tags=("a", "b"))
        await add(store, tagged)
        assert list(await edit_matching(store, JobFilter(tag="b"), lifecycle.cancel("no", T0), 10, T0)) == [
            tagged.id
        ]
        assert (await store.survey(CurrentOverview(T0))).counts["queued"] == 3

    @keeps(9)
    async def test_an_edit_of_nothing_touches_nothing(self, store: Store) -> None:
        for verb in VERBS:
            assert list(await store.edit((new().id,), verb, T0)) == []
            assert list(await store.edit((), verb, T0)) == []

    async def _clear(self, store: Store, job: JobId) -> None:
        kept = await read(store, job)
        if kept is not None and kept.state is State.RUNNING:
            await settle(store, [change(kept, State.SUCCEEDED)], at(6))
        await store.edit((job,), lifecycle.delete(), at(7))
