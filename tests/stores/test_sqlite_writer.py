"""SQLite: the writer's thread, its batches, and what callers hear when the file fails."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from rota.errors import StoreUnavailable
from rota.model import ClaimRequest, CurrentOverview, JobFilter, PageRequest, RetentionCutoffs, State
from rota.store.calls import claim, settle
from rota.store.sqlite import connection_threads, writer
from rota.store.sqlite.job_counts import overview
from rota.store.sqlite.rows import micros
from rota.store.sqlite.store import SqliteStore
from rota.store.sqlite.writer import Transaction
from rota.testing.conformance.factories import EVERYTHING, LEASE_S, T0, at, change, ids, new, running


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(f"sqlite:///{tmp_path}/rota.db?timeout=0.05")
    await opened.open()
    yield opened
    await opened.close()


async def count(store: SqliteStore) -> int:
    return len((await store.jobs(EVERYTHING, PageRequest(limit=1000))).items)


async def test_one_bad_order_harms_no_other_in_its_batch(store: SqliteStore) -> None:
    def bad(transaction: Transaction) -> None:
        transaction.execute("DELETE FROM rota_jobs")
        raise ValueError("bad order")

    orders = [store.insert([new()], T0) for _ in range(5)]
    answers = await asyncio.gather(
        *orders, store._engine.write(bad), store.insert([new()], T0), return_exceptions=True
    )
    assert [type(answer) for answer in answers].count(ValueError) == 1
    assert await count(store) == 6


async def test_a_disk_that_hangs_is_unavailable_and_then_it_works_on(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.clock()
    monkeypatch.setattr(connection_threads, "ANSWER_S", 0.2)
    free = threading.Event()
    waiting = [asyncio.ensure_future(store._engine.write(lambda _: free.wait(30))), store.insert([new()], T0)]
    try:
        for answer in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(answer, StoreUnavailable) and "no answer within 0.25 s" in str(answer)
    finally:
        free.set()
    monkeypatch.undo()
    await store.insert([late := new()], T0)
    assert late.id in [job.id for job in (await store.jobs(EVERYTHING, PageRequest())).items]


async def test_a_lock_held_too_long_is_unavailable_and_then_it_works_on(
    store: SqliteStore, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "rota.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match=r"rota\.db.*locked.*write lock"):
            await store.insert([new()], T0)
        assert await count(store) == 0  # reading continues
        other.execute("ROLLBACK")
    await store.insert([new()], T0)
    assert await count(store) == 1


async def test_a_lock_that_is_let_go_in_time_is_not_noticed(tmp_path: Path) -> None:
    store = SqliteStore(f"sqlite:///{tmp_path}/rota.db")
    await store.open()
    with closing(sqlite3.connect(tmp_path / "rota.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.insert([new()], T0))
        assert await count(store) == 0
        assert not waiting.done()
        other.execute("ROLLBACK")
        await waiting
    assert await count(store) == 1
    await store.close()


async def test_a_full_disk_refuses_and_stores_nothing_until_there_is_space(store: SqliteStore) -> None:
    async def leave_space(pages: int) -> None:
        def limit(transaction: Transaction) -> None:
            used = transaction.execute("PRAGMA page_count").fetchone()[0]
            transaction.execute(f"PRAGMA max_page_count = {used + pages}")

        await store._engine.write(limit)

    large = new(payload_json='"' + "x" * 100_000 + '"')
    await leave_space(2)
    with pytest.raises(StoreUnavailable, match=r"full.*free some disk space"):
        await store.insert([large], T0)
    assert await count(store) == 0
    await leave_space(1000)
    await store.insert([large], T0)
    assert await count(store) == 1


async def test_a_cancelled_caller_does_not_stop_the_writer(store: SqliteStore) -> None:
    tasks = [asyncio.create_task(store.insert([new()], T0)) for _ in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(answer, asyncio.CancelledError) for answer in answers) == 10
    assert await count(store) >= 10


async def test_loops_of_several_threads_share_one_object(store: SqliteStore) -> None:
    def elsewhere(view: SqliteStore) -> None:
        async def insert() -> None:
            await view.open()
            await asyncio.gather(*(view.insert([new(queue="there")], T0) for _ in range(10)))
            await view.close()

        asyncio.run(insert())

    views = [store.for_another_loop() for _ in range(3)]
    threads = [threading.Thread(target=elsewhere, args=(view,)) for view in views]
    for thread in threads:
        thread.start()
    await asyncio.gather(*(store.insert([new(queue="here")], T0) for _ in range(10)))
    for thread in threads:
        await asyncio.get_running_loop().run_in_executor(None, thread.join)
    assert await count(store) == 40  # and closing a view left the original open


async def test_views_of_one_memory_see_the_same_jobs_and_other_objects_do_not() -> None:
    store, stranger = SqliteStore("sqlite://:memory:"), SqliteStore("sqlite://:memory:")
    view = store.for_another_loop()
    for one in (store, view, stranger):
        await one.open()
    await view.insert([new()], T0)
    await view.close()
    assert (await count(store), await count(stranger)) == (1, 0)
    for one in (store, stranger):
        await one.close()


async def test_threads_end_with_the_last_user(store: SqliteStore) -> None:
    view = store.for_another_loop()
    await view.open()
    await count(store)
    await store.close()
    assert await count(view) == 0
    await view.close()
    deadline = time.monotonic() + 10  # a thread that has said its last word takes a moment to go
    while left := [one.name for one in threading.enumerate() if one.name.startswith("rota-sqlite")]:
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.001)


async def test_the_log_is_tidied_away_when_the_last_user_leaves(store: SqliteStore, tmp_path: Path) -> None:
    await store.insert([new()], T0)
    await count(store)
    await store.close()
    assert os.listdir(tmp_path) == ["rota.db"]


# --- what only this store's shape could get wrong ------------------------------------------------


async def test_jobs_of_unknown_tasks_are_stepped_over(store: SqliteStore) -> None:
    await store.insert([new(task="foreign", priority=9) for _ in range(50)], T0)
    known = [new(task=f"t{n}", run_at=at(-n)) for n in range(120)]
    await store.insert(known, T0)
    want = ClaimRequest(worker="w", limit=110, lease_s=30, tasks=tuple(job.task for job in known))
    taken = await claim(store, want, T0)
    assert [job.id for job in taken] == [job.id for job in reversed(known)][:110]


async def test_counts_follow_jobs_through_every_door(store: SqliteStore) -> None:
    async def counts() -> tuple[int, int, int]:
        found = (await store.survey(CurrentOverview(T0))).counts
        return found[State.SUCCEEDED], found[State.FAILED], found[State.CANCELLED]

    for state in (State.SUCCEEDED, State.SUCCEEDED, State.FAILED, State.CANCELLED):
        await settle(store, [change(await running(store), state)], at(1))
    assert await counts() == (2, 1, 1)
    await store.maintain(RetentionCutoffs(), 1, at(86400 * 30))
    assert await counts() == (2, 1, 1)
    assert (
        await store.maintain(RetentionCutoffs(jobs={State.SUCCEEDED: at(10)}), 1, at(86400 * 30))
    ).jobs == 1
    assert (await store.maintain(RetentionCutoffs(jobs={State.FAILED: at(10)}), 10, at(86400 * 30))).jobs == 1
    await store.maintain(RetentionCutoffs(), 1, at(86400 * 40))
    assert await counts() == (1, 0, 1)


async def test_counts_beyond_the_cap_are_called_estimates(store: SqliteStore) -> None:
    await store.insert([new() for _ in range(7)], T0)
    found = await store._engine.read(lambda connection: overview(connection, micros(T0), cap=5))
    assert found.counts[State.QUEUED] == 5
    assert found.estimated == {"queued"}
    exact = await store._engine.read(lambda connection: overview(connection, micros(T0), cap=7))
    assert (exact.counts[State.QUEUED], exact.estimated) == (7, frozenset())


async def test_any_text_survives_a_settle(store: SqliteStore) -> None:
    odd = msgspec.json.encode("\x00\x01\x1f\x7f \"\\ \u2028 é 漢 \U0001f600 ? % ' $1").decode()
    job = await running(store)
    await settle(store, [change(job, State.SUCCEEDED, output_json=odd, progress_json=odd)], at(1))
    (found,) = (await store.jobs(EVERYTHING, PageRequest())).items
    assert (found.output_json, found.progress_json) == (odd, odd)


@pytest.mark.parametrize("n", [1, 2, 3, 255, 256, 700])
async def test_a_bulk_of_any_size_and_mixture_is_stored_whole(store: SqliteStore, n: int) -> None:
    jobs = [
        new(queue=f"q{number // 300}", payload_json=f'"{number}"', tags=("odd",) if number % 7 == 5 else ())
        for number in range(n)
    ]
    assert {answer.outcome for answer in await store.insert(jobs, T0)} == {"created"}
    found = (await store.jobs(EVERYTHING, PageRequest(limit=1000, newest_first=False))).items
    assert [(job.id, job.queue, job.payload_json, job.tags) for job in found] == [
        (job.id, job.queue, job.payload_json, job.tags) for job in sorted(jobs, key=lambda job: job.id)
    ]


async def test_calls_that_share_a_commit_get_their_own_answers_and_times(store: SqliteStore) -> None:
    known, held = new(), new(key="k")
    await store.insert([known, held], T0)
    fresh = [new() for _ in range(5)]
    calls = [([job], at(n)) for n, job in enumerate(fresh)]
    calls += [([known], at(9)), ([new(key="k")], at(9)), ([], at(9))]
    answers = await asyncio.gather(*(store.insert(jobs, now) for jobs, now in calls))
    assert [[(one.id, one.outcome) for one in answer] for answer in answers] == [
        *([(job.id, "created")] for job in fresh),
        [(known.id, "existing")],
        [(held.id, "existing")],
        [],
    ]
    page = await store.jobs(JobFilter(ids=tuple(job.id for job in fresh)), PageRequest())
    assert {job.id: job.created_at for job in page.items} == {job.id: at(n) for n, job in enumerate(fresh)}


async def test_a_claim_reads_rows_that_were_spoilt_by_hand(store: SqliteStore, tmp_path: Path) -> None:
    jobs = [new(timeout=0.1), new(), new()]
    await store.insert(jobs, T0)
    with closing(sqlite3.connect(tmp_path / "rota.db")) as other:
        other.execute("UPDATE rota_jobs SET tags_json = x'ff' WHERE id = ?", (jobs[1].id,))
        other.execute(
            "UPDATE rota_jobs SET payload_json = CAST(x'22ff22' AS TEXT) WHERE id = ?", (jobs[2].id,)
        )
        other.commit()
    taken = await claim(store, ClaimRequest(worker="w", limit=10, lease_s=30), T0)
    assert [(job.id, job.lease_token, job.worker, job.timeout) for job in taken] == [
        (jobs[0].id, 1, "w", 0.1),
        (jobs[1].id, 1, "w", None),
        (jobs[2].id, 1, "w", None),
    ]


async def test_only_a_claim_alone_does_not_wait_for_the_disk(store: SqliteStore) -> None:
    async def waits() -> bool:
        return await store._engine.read(lambda _: store._engine._writer._relaxed is None)

    want = ClaimRequest(worker="w", limit=1, lease_s=30)
    await store.insert([new(), new()], T0)
    assert await waits()
    (job,) = await claim(store, want, T0)
    assert not await waits()
    (other,) = (await store.turn([change(job, State.SUCCEEDED)], want, T0)).jobs
    assert await waits()
    await asyncio.gather(claim(store, want, T0), settle(store, [change(other, State.SUCCEEDED)], T0))
    await store.insert([new()], T0)
    assert await waits()


async def test_microseconds_come_back_exactly(store: SqliteStore) -> None:
    for year in (1971, 2026, 2300, 9998):
        moment = datetime(year, 7, 3, 1, 2, 3, 999_999, UTC)
        await store.insert([job := new(run_at=moment)], T0)
        page = await store.jobs(JobFilter(ids=(job.id,)), PageRequest())
        assert page.items[0].run_at == moment


async def test_no_lease_is_taken_over_right_after_a_stall(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who could not write meanwhile renew first; but rescues are put off only so often."""
    monkeypatch.setattr(writer, "STALL_S", 0.01)  # less than the store's patience here
    monkeypatch.setattr(writer, "RENEWAL_S", 60.0)
    job = await running(store)
    with closing(sqlite3.connect(tmp_path / "rota.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable):
            await store.reclaim("w2", LEASE_S, 10, at(LEASE_S + 1))
        other.execute("ROLLBACK")
    put_off = 0
    while not (rescued := await store.reclaim("w2", LEASE_S, 10, at(LEASE_S + 1))):
        put_off += 1
    assert (ids(rescued), put_off) == ([job.id], writer.MOST_PASSED_OVER)
