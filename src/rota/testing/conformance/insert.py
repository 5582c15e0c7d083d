"""Storing jobs: what comes back is what went in, and an id is stored once."""

from __future__ import annotations

from ...model import Backoff, CurrentOverview, PageRequest, State
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import EVERYTHING, T0, add, at, change, found, in_state, new, new_id, running, want
from .rules import keeps


class InsertRules:
    @keeps(1)
    async def test_a_job_is_stored_as_it_was_given(self, store: Store) -> None:
        asked = new(
            task="mail.send",
            payload_json='{"to":"ann"}',
            queue="mail",
            tenant="acme",
            priority=7,
            run_at=at(60.123456),
            max_attempts=9,
            timeout=12.5,
            backoff=Backoff(base=1.0, factor=3.0, cap=None, jitter=0.0),
            key="mail:1",
            auto_remove=True,
            tags=("a", "b"),
            parent=new_id(),
            origin="job",
            schedule="nightly",
            scheduled_for=at(30),
            concurrency_key="account:7",
            units=12,
            price=2.5,
        )
        await add(store, asked)
        job = await found(store, asked.id)
        for name in asked.__struct_fields__:
            if name not in ("on_conflict", "key_for"):
                assert getattr(job, name) == getattr(asked, name), name
        assert (job.state, job.attempt, job.lease_token) == (State.QUEUED, 0, 0)
        assert job.created_at == T0
        assert (job.worker, job.lease_until, job.started_at, job.finished_at) == (None, None, None, None)
        assert (job.output_json, job.error_json, job.progress_json, job.cost_cents) == (None, None, None, 0)
        assert job.cancel_requested is False

    @keeps(1)
    async def test_a_job_without_a_time_is_due_at_once(self, store: Store) -> None:
        job = new()
        await add(store, job)
        assert (await found(store, job.id)).run_at == T0

    @keeps(1)
    async def test_answers_come_in_the_order_of_the_request(self, store: Store) -> None:
        first, second, third = new(), new(), new()
        await add(store, second)
        answers = await add(store, third, second, first)
        assert [answer.id for answer in answers] == [third.id, second.id, first.id]
        assert [answer.outcome for answer in answers] == ["created", "existing", "created"]

    @keeps(1)
    async def test_inserting_nothing_is_fine(self, store: Store) -> None:
        assert list(await store.insert([], T0)) == []

    @keeps(1)
    async def test_the_same_id_again_changes_nothing_while_the_job_waits(self, store: Store) -> None:
        job = new(payload_json='{"n":1}')
        await add(store, job)
        (answer,) = await add(store, new(id=job.id, payload_json='{"n":2}'), now=at(5))
        assert (answer.id, answer.outcome, answer.state) == (job.id, "existing", State.QUEUED)
        assert (await found(store, job.id)).payload_json == '{"n":1}'
        assert len(await claim(store, want(), at(10))) == 1

    @keeps(1)
    async def test_the_same_id_again_changes_nothing_while_the_job_runs(self, store: Store) -> None:
        job = await running(store)
        (answer,) = await add(store, new(id=job.id))
        assert (answer.id, answer.outcome, answer.state) == (job.id, "existing", State.RUNNING)
        assert list(await claim(store, want(), at(1))) == []

    @keeps(1)
    async def test_the_same_id_twice_in_one_batch_is_stored_once(self, store: Store) -> None:
        job = new()
        answers = await add(store, job, job)
        assert [answer.outcome for answer in answers] == ["created", "existing"]
        assert len(await claim(store, want(), T0)) == 1

    @keeps(1)
    async def test_again_finds_a_job_that_has_ended(self, store: Store) -> None:
        for state in (State.SUCCEEDED, State.FAILED, State.CANCELLED):
            job = await in_state(store, state)
            (answer,) = await store.insert([new(id=job)], at(10), retrying=True)
            assert (answer.id, answer.outcome, answer.state) == (job, "existing", state)
        assert list(await claim(store, want(), at(20))) == []

    @keeps(2)
    async def test_again_finds_a_job_with_a_key_that_has_ended(self, store: Store) -> None:
        job = await in_state(store, State.SUCCEEDED, key="k")
        (answer,) = await store.insert([new(id=job, key="k")], at(10), retrying=True)
        assert (answer.id, answer.outcome, answer.state) == (job, "existing", State.SUCCEEDED)
        assert list(await claim(store, want(), at(20))) == []

    @keeps(1)
    async def test_again_stores_a_job_that_was_never_stored(self, store: Store) -> None:
        known, lost = new(), new()
        await add(store, known)
        answers = await store.insert([known, lost], at(1), retrying=True)
        assert [answer.outcome for answer in answers] == ["existing", "created"]

    @keeps(1)
    async def test_a_large_batch_is_stored_whole(self, store: Store) -> None:
        jobs = [new(payload_json=f'{{"n":{n}}}') for n in range(2500)]
        answers = await add(store, *jobs)
        assert {answer.outcome for answer in answers} == {"created"}
        assert (await store.survey(CurrentOverview(T0))).counts["queued"] == 2500

    @keeps(1)
    async def test_texts_come_back_unchanged(self, store: Store) -> None:
        odd = 'O\'Brien \\ "%s" {1,2} $1 :x ? ☃ 😀 \u2028 \x7f'
        payload = '{"text":"\\"\\\\ ☃ 😀 \u2028","deep":[[[{"a":null}]]],"n":9223372036854775807,"f":1e-7}'
        job = new(payload_json=payload, tenant=odd, queue=odd, task=odd, key=odd, tags=(odd, "", "a,b"))
        await add(store, job)
        kept = await found(store, job.id)
        assert kept.payload_json == payload
        assert (kept.tenant, kept.queue, kept.task, kept.key) == (odd, odd, odd, odd)
        assert kept.tags == (odd, "", "a,b")

    @keeps(1)
    async def test_a_long_payload_comes_back_unchanged(self, store: Store) -> None:
        payload = '{"blob":"' + "ab☃" * 100_000 + '"}'
        job = await running(store, payload_json=payload)
        assert job.payload_json == payload
        await settle(store, [change(job, State.SUCCEEDED, output_json=payload)], at(1))
        kept = await found(store, job.id)
        assert (kept.payload_json, kept.output_json) == (payload, payload)

    @keeps(1)
    async def test_instants_keep_their_microseconds(self, store: Store) -> None:
        job = new(run_at=at(0.000001))
        await add(store, job, now=at(0.654321))
        kept = await found(store, job.id)
        assert (kept.run_at, kept.created_at) == (at(0.000001), at(0.654321))
        assert kept.run_at.utcoffset() is not None

    @keeps(1)
    async def test_an_empty_store_is_empty(self, store: Store) -> None:
        page = await store.jobs(EVERYTHING, PageRequest())
        assert (list(page.items), page.next) == ([], None)
