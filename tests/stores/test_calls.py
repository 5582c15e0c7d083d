"""What callers build from the methods of a store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from rota.core.jobs import lifecycle
from rota.model import JobFilter, State
from rota.store import calls
from rota.store.calls import claim, edit_matching, find_document, settle
from rota.store.sqlite.store import SqliteStore
from rota.testing.conformance.factories import T0, at, change, found, in_state, new, want


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    opened = SqliteStore("sqlite://:memory:")
    await opened.open()
    yield opened
    await opened.close()


async def test_half_turns_claim_and_settle(store: SqliteStore) -> None:
    await store.insert([new(), new()], T0)
    first, second = await claim(store, want(), T0)
    assert await settle(store, [change(first, State.SUCCEEDED)], at(1)) == frozenset()
    assert await settle(store, [change(first, State.FAILED)], at(2)) == {first.id}
    assert list(await claim(store, want(), at(3))) == []
    assert (await found(store, second.id)).state is State.RUNNING


async def test_one_document_is_found_by_its_key(store: SqliteStore) -> None:
    await store.put_document("gate", "a", "1", 0, T0)
    document = await find_document(store, "gate", "a")
    assert document is not None and document.body == "1"
    assert await find_document(store, "gate", "b") is None


@pytest.mark.parametrize("limit", [0, 1, 3, 7, 20])
async def test_an_edit_by_filter_takes_the_oldest_up_to_its_limit(
    store: SqliteStore, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "EDITED_AT_ONCE", 3)
    jobs = [new() for _ in range(8)]
    await store.insert([*jobs, new(queue="other")], T0)
    where = JobFilter(queue="default")
    changed = await edit_matching(store, where, lifecycle.cancel("no", T0), limit, T0)
    assert list(changed) == sorted(job.id for job in jobs)[:limit]


async def test_an_edit_by_filter_keeps_to_the_states_of_both(store: SqliteStore) -> None:
    failed = await in_state(store, State.FAILED)
    await in_state(store, State.SUCCEEDED)
    queued = await in_state(store, State.QUEUED)
    where = JobFilter(states=(State.FAILED, State.QUEUED))
    assert list(await edit_matching(store, where, lifecycle.retry(at(5)), 10, at(5))) == [failed]
    where = JobFilter(states=(State.QUEUED, State.RUNNING), ids=(queued,))
    assert list(await edit_matching(store, where, lifecycle.retry(at(6)), 10, at(6))) == []
