"""How far an action on many jobs came: in batches, in steps that end in time, and when the store fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from call_counter import CountingStore

from rota import Rota
from rota.errors import OptionError, StoreUnavailable
from rota.operate import Operations, bulk
from rota.operate.bulk import BulkInterrupted
from rota.operate.requests import AuditRequest, BulkRequest, EnqueueRequest, JobSelector


class FailingStore(CountingStore):
    """A real store that is lost when its edits begin the given batch, and found again after that."""

    def __init__(self, store: Any, at: int) -> None:
        super().__init__(store)
        self._at = at

    async def edit(self, *args: Any) -> Sequence[str]:
        self.calls["edit"] += 1
        if self.calls["edit"] == self._at:
            raise StoreUnavailable("gone")
        edited: Sequence[str] = await self._store.edit(*args)
        return edited


@contextmanager
def failing_at(app: Rota, store: Any, batch: int) -> Iterator[None]:
    failing = FailingStore(store, batch)

    async def get() -> FailingStore:
        return failing

    with patch.object(app.stores, "get", get):
        yield


async def enqueue(operations: Operations, count: int) -> None:
    for _ in range(count):
        await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}))


CANCEL = BulkRequest(action="cancel", filter=JobSelector(task="send"))


async def test_a_store_that_fails_midway_leaves_a_count_and_a_way_to_continue(
    app: Rota, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH", 2)
    await enqueue(operations, 9)
    with (
        failing_at(app, await app.stores.get(), batch=3),
        pytest.raises(BulkInterrupted, match="after 4 jobs: send the request again to continue") as failed,
    ):
        await operations.jobs.bulk(CANCEL)
    assert failed.value.done == 4
    assert (await operations.system.stats()).cancelled == 4
    entry = (await operations.system.audit(AuditRequest(action="jobs.cancel"))).items[0]
    assert (entry.result, entry.after["done"], len(entry.after["jobs"])) == ("failed", 4, 4)
    again = await operations.jobs.bulk(CANCEL)
    assert (again.matched, again.done, again.next) == (5, 5, None)


async def test_a_store_that_fails_at_once_is_just_unavailable(app: Rota, operations: Operations) -> None:
    await enqueue(operations, 2)
    with failing_at(app, await app.stores.get(), batch=1), pytest.raises(StoreUnavailable) as failed:
        await operations.jobs.bulk(CANCEL)
    assert not isinstance(failed.value, BulkInterrupted)


async def test_a_slow_step_ends_early_and_every_answer_tells_the_total(
    operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH", 2)
    monkeypatch.setattr(bulk, "STEP_S", 0.0)
    await enqueue(operations, 7)
    totals, request = [], CANCEL
    while True:
        step = await operations.jobs.bulk(request)
        totals.append((step.done, step.total))
        if step.next is None:
            break
        request = BulkRequest(action="cancel", filter=JobSelector(task="send"), cursor=step.next)
    assert totals == [(2, 2), (2, 4), (2, 6), (1, 7)]
    assert (await operations.system.stats()).cancelled == 7


@pytest.mark.parametrize("cursor", ["x", "//many", f"//{'9' * 20}", "//-1"])
async def test_a_cursor_that_no_step_returned_is_refused(operations: Operations, cursor: str) -> None:
    with pytest.raises(OptionError):
        await operations.jobs.bulk(BulkRequest(action="cancel", filter=JobSelector(), cursor=cursor))
