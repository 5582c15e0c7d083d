"""Idempotency keys: at most one live job per tenant and key; a final state sets the key free."""

from __future__ import annotations

from ...core.jobs import lifecycle
from ...model import CurrentOverview, JobFilter, PageRequest, State
from ...store.calls import claim, edit_matching, settle
from ...store.protocol import Store
from .factories import FINAL_STATES, T0, add, at, change, found, in_state, new, read, running, want
from .rules import keeps


class KeyRules:
    @keeps(2)
    async def test_a_taken_key_returns_the_job_that_holds_it(self, store: Store) -> None:
        holder = new(key="k")
        await add(store, holder)
        (answer,) = await add(store, new(key="k", payload_json='{"n":2}'))
        assert (answer.id, answer.outcome, answer.state) == (holder.id, "existing", State.QUEUED)
        assert (await found(store, holder.id)).payload_json == "{}"

    @keeps(2)
    async def test_a_taken_key_is_refused_when_asked_to_raise(self, store: Store) -> None:
        holder = new(key="k")
        await add(store, holder)
        (answer,) = await add(store, new(key="k", on_conflict="raise"))
        assert (answer.id, answer.outcome) == (holder.id, "refused")
        assert (await store.survey(CurrentOverview(T0))).counts["queued"] == 1

    @keeps(2)
    async def test_replace_changes_the_waiting_job(self, store: Store) -> None:
        await add(store, holder := new(key="k", run_at=at(100)))
        replacement = new(
            key="k",
            on_conflict="replace",
            task="other",
            queue="q2",
            priority=3,
            payload_json="[2]",
            run_at=at(50),
        )
        (answer,) = await add(store, replacement, now=at(1))
        assert (answer.id, answer.outcome, answer.state) == (holder.id, "replaced", State.QUEUED)
        job = await found(store, holder.id)
        assert (job.task, job.queue, job.priority) == ("other", "q2", 3)
        assert (job.payload_json, job.run_at, job.key) == ("[2]", at(50), "k")
        assert len((await store.jobs(JobFilter(key="k"), PageRequest())).items) == 1

    @keeps(2)
    async def test_a_replaced_job_starts_without_the_snoozes_and_crashes_of_the_one_before(
        self, store: Store
    ) -> None:
        job = await running(store, key="k")
        back = change(job, State.QUEUED, run_at=at(9), snoozes=3, crashes=2, progress_json='{"percent":5.0}')
        await settle(store, [back], at(1))
        (answer,) = await add(store, new(key="k", on_conflict="replace"), now=at(2))
        assert answer.outcome == "replaced"
        replaced = await found(store, job.id)
        assert (replaced.snoozes, replaced.crashes, replaced.progress_json) == (0, 0, None)

    @keeps(2)
    async def test_a_replaced_job_can_be_claimed_at_its_new_time(self, store: Store) -> None:
        await add(store, new(key="k", run_at=at(100)))
        (answer,) = await add(store, new(key="k", on_conflict="replace", payload_json="[2]"), now=at(1))
        (job,) = await claim(store, want(), at(2))
        assert (job.id, job.payload_json) == (answer.id, "[2]")
        (answer,) = await add(store, new(key="k2", run_at=at(3)), now=at(2))
        await add(store, new(key="k2", on_conflict="replace", run_at=at(100)), now=at(2))
        assert list(await claim(store, want(), at(50))) == []

    @keeps(2)
    async def test_replace_leaves_a_running_job_alone(self, store: Store) -> None:
        job = await running(store, key="k")
        (answer,) = await add(store, new(key="k", on_conflict="replace", payload_json="[2]"), now=at(1))
        assert (answer.id, answer.state) == (job.id, State.RUNNING)
        assert answer.outcome == "refused"
        assert (await found(store, job.id)).payload_json == "{}"
        assert list(await claim(store, want(), at(2))) == []

    @keeps(2)
    async def test_replace_without_a_holder_creates(self, store: Store) -> None:
        job = new(key="k", on_conflict="replace")
        (answer,) = await add(store, job)
        assert (answer.id, answer.outcome) == (job.id, "created")

    @keeps(2)
    async def test_a_key_is_held_while_the_job_runs_and_while_it_waits_again(self, store: Store) -> None:
        job = await running(store, key="k")
        assert (await add(store, new(key="k")))[0].state is State.RUNNING
        await settle(store, [change(job, State.QUEUED, run_at=at(60))], at(1))
        (answer,) = await add(store, new(key="k"), now=at(2))
        assert (answer.id, answer.outcome, answer.state) == (job.id, "existing", State.QUEUED)

    @keeps(2)
    async def test_a_key_is_held_through_a_reclaim(self, store: Store) -> None:
        job = await running(store, key="k")
        await store.reclaim("w2", 30, 10, at(100))
        assert (await add(store, new(key="k"), now=at(101)))[0].id == job.id

    @keeps(2)
    async def test_every_final_state_sets_the_key_free(self, store: Store) -> None:
        for state in FINAL_STATES:
            await in_state(store, state, key="k")
            job = new(key="k")
            (answer,) = await add(store, job, now=at(2))
            assert (answer.id, answer.outcome) == (job.id, "created")
            await store.edit((job.id,), lifecycle.delete(), at(3))

    @keeps(2)
    async def test_cancelling_a_waiting_job_sets_its_key_free(self, store: Store) -> None:
        job = await in_state(store, State.QUEUED, key="k")
        await store.edit((job,), lifecycle.cancel("no", T0), T0)
        assert (await add(store, new(key="k")))[0].outcome == "created"

    @keeps(2)
    async def test_a_removed_job_sets_its_key_free(self, store: Store) -> None:
        job = await running(store, key="k", auto_remove=True)
        await settle(store, [change(job, State.SUCCEEDED, remove=True)], at(1))
        assert (await add(store, new(key="k")))[0].outcome == "created"

    @keeps(2)
    async def test_tenants_do_not_share_keys(self, store: Store) -> None:
        answers = await add(store, new(key="k", tenant="a"), new(key="k", tenant="b"), new(key="k"))
        assert {answer.outcome for answer in answers} == {"created"}

    @keeps(2)
    async def test_one_key_twice_in_a_batch_makes_one_job(self, store: Store) -> None:
        first, second = new(key="k"), new(key="k")
        answers = await add(store, first, second)
        assert [answer.outcome for answer in answers] == ["created", "existing"]
        assert [answer.id for answer in answers] == [first.id, first.id]

    @keeps(2)
    async def test_jobs_without_a_key_do_not_meet(self, store: Store) -> None:
        answers = await add(store, new(), new(), new())
        assert {answer.outcome for answer in answers} == {"created"}

    @keeps(2)
    async def test_the_same_id_and_key_again_is_the_same_job(self, store: Store) -> None:
        job = new(key="k", on_conflict="raise")
        await add(store, job)
        (answer,) = await store.insert([job], at(1), retrying=True)
        assert (answer.id, answer.outcome) == (job.id, "existing")

    @keeps(2)
    async def test_a_retried_job_takes_its_key_again(self, store: Store) -> None:
        job = await in_state(store, State.FAILED, key="k")
        assert list(await store.edit((job,), lifecycle.retry(at(5)), at(5))) == [job]
        (answer,) = await add(store, new(key="k"), now=at(6))
        assert (answer.id, answer.outcome) == (job, "existing")

    @keeps(2)
    async def test_a_retry_is_left_out_when_its_key_is_taken(self, store: Store) -> None:
        old = await in_state(store, State.FAILED, key="k")
        free = await in_state(store, State.FAILED)
        await add(store, new(key="k"), now=at(2))
        touched = await edit_matching(
            store, JobFilter(states=(State.FAILED,)), lifecycle.retry(at(5)), 10, at(5)
        )
        assert list(touched) == [free]
        assert (await found(store, old)).state is State.FAILED

    @keeps(2)
    async def test_of_two_ended_jobs_with_one_key_only_one_is_retried(self, store: Store) -> None:
        pair = [await in_state(store, State.FAILED, key="k") for _ in range(2)]
        touched = await edit_matching(store, JobFilter(key="k"), lifecycle.retry(at(5)), 10, at(5))
        assert len(touched) == 1
        states = sorted([(await found(store, job)).state for job in pair])
        assert states == [State.FAILED, State.QUEUED]

    @keeps(2)
    async def test_deleting_an_ended_job_does_not_free_the_key_of_a_live_one(self, store: Store) -> None:
        old = await in_state(store, State.FAILED, key="k")
        live = new(key="k")
        await add(store, live, now=at(2))
        await store.edit((old,), lifecycle.delete(), at(3))
        (answer,) = await add(store, new(key="k"), now=at(4))
        assert (answer.id, answer.outcome) == (live.id, "existing")
        assert await read(store, old) is None
