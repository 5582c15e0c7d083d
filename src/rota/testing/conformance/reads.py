"""Reading: pages in order, each job once, and filters that match exactly."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ...core.jobs import lifecycle
from ...core.jobs.lifecycle import fault_json
from ...model import ErrorRecord, JobCount, JobFilter, JobId, PageRequest, RetentionCutoffs, State
from ...store.calls import claim, edit_matching, settle
from ...store.protocol import Store
from .factories import EVERYTHING, REACHABLE, T0, add, at, change, ids, in_state, new, running, want
from .rules import keeps


async def paged(store: Store, where: JobFilter, limit: int, newest_first: bool) -> list[JobId]:
    """All ids, page by page."""
    return [job for page in await pages(store, where, limit, newest_first) for job in page]


async def pages(store: Store, where: JobFilter, limit: int, newest_first: bool) -> list[list[JobId]]:
    found: list[list[JobId]] = []
    cursor: str | None = None
    while True:
        page = await store.jobs(where, PageRequest(limit=limit, cursor=cursor, newest_first=newest_first))
        found.append(ids(page.items))
        cursor = page.next
        if cursor is None:
            return found
        assert len(found) < 100, "the pages do not end"


class ReadRules:
    @keeps(10)
    async def test_pages_go_through_all_jobs_once_in_both_directions(self, store: Store) -> None:
        made = [await in_state(store, REACHABLE[n % 5], queue=f"q{n}") for n in range(23)]
        for newest_first in (True, False):
            found = await pages(store, EVERYTHING, 5, newest_first)
            assert [len(page) for page in found] == [5, 5, 5, 5, 3]
            assert [job for page in found for job in page] == sorted(made, reverse=newest_first)

    @keeps(10)
    async def test_jobs_created_at_the_same_time_are_each_listed_once(self, store: Store) -> None:
        jobs = [new(run_at=at(5)) for _ in range(9)]
        await add(store, *jobs)
        found = await paged(store, EVERYTHING, 2, newest_first=True)
        assert found == sorted([job.id for job in jobs], reverse=True)

    @keeps(10)
    async def test_a_full_last_page_ends_without_repeating(self, store: Store) -> None:
        await add(store, *[new() for _ in range(4)])
        found = await paged(store, EVERYTHING, 2, newest_first=True)
        assert len(set(found)) == len(found) == 4

    @keeps(10)
    async def test_new_jobs_do_not_disturb_the_pages_of_older_ones(self, store: Store) -> None:
        old = [new() for _ in range(6)]
        await add(store, *old)
        page = await store.jobs(EVERYTHING, PageRequest(limit=3))
        await add(store, *[new() for _ in range(5)])
        rest = await store.jobs(EVERYTHING, PageRequest(limit=10, cursor=page.next))
        assert ids(page.items) + ids(rest.items) == sorted([job.id for job in old], reverse=True)

    @keeps(10)
    async def test_a_brief_page_has_everything_but_payload_and_output(self, store: Store) -> None:
        job = await running(store, payload_json='{"a":1}', tags=("t",), key="k")
        error = fault_json(ErrorRecord(type="E", message="m"))
        await settle(store, [change(job, State.FAILED, output_json="[1]", error_json=error)], at(1))
        (whole,) = (await store.jobs(EVERYTHING, PageRequest())).items
        (brief,) = (await store.jobs(EVERYTHING, PageRequest(brief=True))).items
        assert (whole.payload_json, brief.payload_json, brief.output_json) == ('{"a":1}', "{}", None)
        assert replace(whole, payload_json="{}", output_json=None) == brief

    @keeps(10)
    async def test_pages_keep_to_their_filter(self, store: Store) -> None:
        wanted = [new(queue="a") for _ in range(5)]
        for job in wanted:
            await add(store, new(queue="b"), job)
        found = await paged(store, JobFilter(queue="a"), 2, newest_first=False)
        assert found == [job.id for job in wanted]

    @keeps(10)
    async def test_each_filter_finds_its_jobs(self, store: Store) -> None:
        parent = new().id
        marks: dict[str, Any] = {
            "task": "t", "queue": "q", "tenant": "x", "key": "k", "schedule": "s", "parent": parent,
            "concurrency_key": "account:1",
        }  # fmt: skip
        await add(store, new(), new(tags=("other",)))
        for field, value in marks.items():
            await add(store, job := new(**{field: value}))
            assert ids((await store.jobs(JobFilter(**{field: value}), PageRequest())).items) == [job.id], (
                field
            )
        await add(store, job := new(units=7), new(units=5))
        assert ids((await store.jobs(JobFilter(units_above=5), PageRequest())).items) == [job.id]
        await add(store, job := new(tags=("one", "two")))
        assert ids((await store.jobs(JobFilter(tag="two"), PageRequest())).items) == [job.id]

    @keeps(10)
    async def test_jobs_are_found_by_the_worker_that_had_them(self, store: Store) -> None:
        await add(store, new())
        (job,) = await claim(store, want(worker="w9"), T0)
        await running(store)
        for state in (State.RUNNING, State.SUCCEEDED):
            assert ids((await store.jobs(JobFilter(worker="w9"), PageRequest())).items) == [job.id]
            both = JobFilter(worker="w9", states=(state,))
            assert ids((await store.jobs(both, PageRequest())).items) == [job.id]
            await settle(store, [change(job, State.SUCCEEDED)], at(1))

    @keeps(10)
    async def test_jobs_are_found_by_what_stands_in_their_payload(self, store: Store) -> None:
        texts = (
            '{"order":{"id":42,"paid":true,"to":"a b"}}',
            '{"order":{"id":7,"paid":false}}',
            '{"x y":"z"}',
        )
        first, second, third = [await self._with_payload(store, text) for text in texts]

        async def found(*path: str, text: str) -> list[JobId]:
            return ids((await store.jobs(JobFilter(payload=((path, text),)), PageRequest())).items)

        assert await found("order", "id", text="42") == [first]
        assert await found("order", "paid", text="true") == [first]
        assert await found("order", "paid", text="false") == [second]
        assert await found("order", "to", text="a b") == [first]
        assert await found("x y", text="z") == [third]
        assert await found("order", "gone", text="42") == await found('a"b', text="1") == []
        both = JobFilter(payload=((("order", "id"), "42"), (("order", "paid"), "false")))
        assert await store.survey(JobCount(both, 10)) == 0

    @keeps(10)
    async def test_a_key_of_a_payload_is_found_by_its_own_spelling_only(self, store: Store) -> None:
        for text in ('{"cvv":"731"}', '{"card":{"cvv":"731"}}', '{"cards":[{"cvv":"731"}]}'):
            await self._with_payload(store, text)
        for key in (
            r"cv\u0076",
            r"\u0063vv",
            'cvv"',
            'x".cvv',
            '"cvv"',
            "$.cvv",
            "cvv[0]",
            "cv\\v",
            "cvv#-1",
        ):
            for path in ((key,), ("card", key), ("cards", key), ("cards", "0", key)):
                found = await store.jobs(JobFilter(payload=((path, "731"),)), PageRequest())
                assert not found.items, path

    async def _with_payload(self, store: Store, text: str) -> JobId:
        job = new(payload_json=text)
        await store.insert([job], T0)
        return job.id

    @keeps(10)
    async def test_jobs_are_found_by_words_of_their_error(self, store: Store) -> None:
        async def failing(kind: str, message: str, state: State = State.FAILED) -> JobId:
            job = await running(store, queue="e")
            error = fault_json(ErrorRecord(type=kind, message=message, traceback="Gateway", at=T0, attempt=1))
            await settle(store, [change(job, state, error_json=error, run_at=at(900))], at(1))
            return job.id

        await in_state(store, State.SUCCEEDED)
        broken = await failing("ConnectionError", "100% lost: the server's GONE\nfor_ever")
        again = await failing("TimeoutError", "connection timed out", State.QUEUED)

        async def with_error(text: str, **fields: Any) -> list[JobId]:
            return ids((await store.jobs(JobFilter(error=text, **fields), PageRequest())).items)

        assert await with_error("connection") == [again, broken]
        assert await with_error("timeouterror") == [again]
        assert await with_error("Gone\nFOR_ever") == [broken]
        assert await with_error("0% l") == await with_error("r's") == [broken]
        assert await with_error("connection", states=(State.FAILED,)) == [broken]
        assert await with_error("connection", states=(State.QUEUED,)) == [again]
        for nowhere in ("gateway", "c%n", "for.ever", "message", "forXever", '"type"'):
            assert await with_error(nowhere) == [], nowhere

    @keeps(10)
    async def test_tasks_and_queues_can_be_left_out(self, store: Store) -> None:
        jobs = {(task, queue): new(task=task, queue=queue) for task in "tuv" for queue in "abc"}
        await add(store, *jobs.values())
        await in_state(store, State.SUCCEEDED, task="t", queue="z")
        page = await store.jobs(JobFilter(not_tasks=("t", "v", "w")), PageRequest(newest_first=False))
        assert ids(page.items) == [jobs["u", queue].id for queue in "abc"]
        both = JobFilter(not_tasks=("t", "v"), not_queues=("a", "b"))
        assert ids((await store.jobs(both, PageRequest())).items) == [jobs["u", "c"].id]

    @keeps(10)
    async def test_ids_bound_what_is_read_and_are_not_part_of_it(self, store: Store) -> None:
        made = [await in_state(store, REACHABLE[n % 5], queue=f"q{n}") for n in range(10)]
        between = JobFilter(after_id=made[2], before_id=made[7])
        for newest_first in (True, False):
            found = await paged(store, between, 2, newest_first)
            assert found == sorted(made[3:7], reverse=newest_first)
        assert await paged(store, JobFilter(after_id=made[8]), 5, newest_first=True) == made[9:]
        assert await paged(store, JobFilter(before_id=made[1]), 5, newest_first=True) == made[:1]
        assert await store.survey(JobCount(between, 100)) == 4
        gone = await edit_matching(store, between, lifecycle.cancel("no", at(5)), 100, at(5))
        assert set(gone) <= set(made[3:7])

    @keeps(10)
    async def test_each_state_can_be_filtered(self, store: Store) -> None:
        made = {state: await in_state(store, state, queue=state.value) for state in reversed(REACHABLE)}
        for state, job in made.items():
            assert ids((await store.jobs(JobFilter(states=(state,)), PageRequest())).items) == [job]
        both = JobFilter(states=(State.QUEUED, State.FAILED))
        assert set(ids((await store.jobs(both, PageRequest())).items)) == {
            made[State.QUEUED],
            made[State.FAILED],
        }
        assert not (await store.jobs(JobFilter(states=()), PageRequest())).items

    @keeps(10)
    async def test_every_given_filter_must_hold(self, store: Store) -> None:
        await add(
            store, new(queue="a", tenant="x"), new(queue="a"), hit := new(queue="a", tenant="x", task="t")
        )
        page = await store.jobs(JobFilter(queue="a", tenant="x", task="t"), PageRequest())
        assert ids(page.items) == [hit.id]

    @keeps(10)
    async def test_filters_reach_running_and_ended_jobs_too(self, store: Store) -> None:
        for state in (State.SUCCEEDED, State.RUNNING):
            job = await in_state(store, state, tags=("t",), tenant="x", key="k")
            for where in (JobFilter(tag="t"), JobFilter(tenant="x"), JobFilter(key="k")):
                assert job in ids((await store.jobs(where, PageRequest())).items)

    @keeps(10)
    async def test_named_ids_are_found_and_strangers_are_not(self, store: Store) -> None:
        await add(store, first := new(), second := new(), new())
        page = await store.jobs(JobFilter(ids=(first.id, second.id, new().id)), PageRequest())
        assert ids(page.items) == [second.id, first.id]
        assert list((await store.jobs(JobFilter(ids=()), PageRequest())).items) == []

    @keeps(10)
    async def test_a_job_without_records_has_no_attempts(self, store: Store) -> None:
        assert list(await store.attempts(new().id)) == []
        job = await running(store)
        await settle(store, [change(job, State.SUCCEEDED)], at(1))
        assert list(await store.attempts(job.id)) == []

    @keeps(10)
    async def test_the_clock_of_the_store_is_in_utc(self, store: Store) -> None:
        offset = (await store.clock()).utcoffset()
        assert offset is not None
        assert offset.total_seconds() == 0

    @keeps(10)
    async def test_a_migrated_store_has_nothing_pending(self, store: Store) -> None:
        assert list(await store.schema.pending()) == []
        assert list(await store.schema.migrate()) == []

    @keeps(10)
    async def test_a_fresh_migration_deletes_everything(self, store: Store) -> None:
        await in_state(store, State.SUCCEEDED)
        await in_state(store, State.QUEUED)
        await store.put_document("calendar", "holidays", "{}", None, T0)
        await store.schema.migrate(fresh=True)
        assert ids((await store.jobs(EVERYTHING, PageRequest())).items) == []
        assert list(await store.documents("calendar")) == []
        assert list(await store.schema.pending()) == []
        job = await in_state(store, State.SUCCEEDED)
        assert ids((await store.jobs(EVERYTHING, PageRequest())).items) == [job]

    @keeps(10)
    async def test_upkeep_can_run_at_any_time(self, store: Store) -> None:
        job = await in_state(store, State.SUCCEEDED)
        for now in (T0, at(1), at(86_400 * 3)):
            await store.maintain(RetentionCutoffs(), 1, now)
        assert ids((await store.jobs(EVERYTHING, PageRequest())).items) == [job]
