"""Single-job edits: one read per edit, a result that equals the stored job, and races with other edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from actors import operations_of
from call_counter import counted_calls

from rota import Rota
from rota.core.jobs import lifecycle
from rota.errors import IllegalMove, NotFound
from rota.model import ClaimRequest, Edit, Job, State
from rota.operate import Operations, job_edits
from rota.operate.requests import CancelRequest, EnqueueRequest, UpdateJobRequest
from rota.store.calls import claim, settle
from rota.store.protocol import Store
from rota.testing import drain

READ_ONCE = {"jobs": 1, "edit": 1, "append_audit": 1}


async def queued(app: Rota) -> Job:
    job = await app.operations().jobs.enqueue(
        EnqueueRequest(task="send", payload={"to": "x"}, key="k", tags=("a",), delay=0.0)
    )
    return await job_edits.get(await app.stores.get(), job.id)


async def running(app: Rota) -> Job:
    job, store = await queued(app), await app.stores.get()
    want = ClaimRequest(worker="w", tasks=("send",), limit=1, lease_s=60.0)
    await claim(store, want, app.clock.now())
    return await job_edits.get(store, job.id)


async def succeeded(app: Rota) -> Job:
    job = await queued(app)
    await drain(app)
    return await job_edits.get(await app.stores.get(), job.id)


async def retrying(app: Rota) -> Job:
    """A queued job with a failed attempt behind it."""

    @app.task(max_attempts=3)
    async def flaky() -> None:
        raise ValueError("try again")

    handle = await app.enqueue("flaky", {})
    await drain(app)
    return await job_edits.get(await app.stores.get(), handle.id)


async def cancelled(app: Rota) -> Job:
    job = await queued(app)
    return await app.operations().jobs.cancelled(job.id, "not needed")


# --- one read ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prepare", "act"),
    [
        (cancelled, lambda operations, id: operations.jobs.retry(id)),
        (queued, lambda operations, id: operations.jobs.cancel(id, CancelRequest())),
        (running, lambda operations, id: operations.jobs.cancel(id, CancelRequest())),
        (queued, lambda operations, id: operations.jobs.move(id, UpdateJobRequest(priority=5))),
        (queued, lambda operations, id: operations.jobs.delete(id)),
    ],
)
async def test_action_on_one_job_reads_it_once(
    app: Rota, operations: Operations, prepare: Callable[[Rota], Any], act: Callable[[Operations, str], Any]
) -> None:
    job = await prepare(app)
    with counted_calls(app, await app.stores.get()) as calls:
        await act(operations, job.id)
    assert calls == READ_ONCE


async def test_rejected_action_reads_the_job_once(app: Rota, operations: Operations) -> None:
    job = await queued(app)
    with counted_calls(app, await app.stores.get()) as calls, pytest.raises(IllegalMove):
        await operations.jobs.retry(job.id)
    assert calls == {"jobs": 1, "append_audit": 1}


async def test_action_on_another_tenants_job_edits_nothing(app: Rota) -> None:
    job = await queued(app)
    with counted_calls(app, await app.stores.get()) as calls, pytest.raises(NotFound):
        await operations_of(app, "operator", "acme").jobs.cancel(job.id, CancelRequest())
    assert calls == {"jobs": 1, "append_audit": 1}


# --- the result ----------------------------------------------------------------------------------


def moved(app: Rota) -> Edit:
    return lifecycle.move(run_at=app.clock.now(), priority=7, queue="fast")


@pytest.mark.parametrize(
    ("prepare", "edit"),
    [
        (queued, lambda app: lifecycle.cancel("why", app.clock.now())),
        (running, lambda app: lifecycle.cancel("why", app.clock.now())),
        (succeeded, lambda app: lifecycle.retry(app.clock.now())),
        (cancelled, lambda app: lifecycle.retry(app.clock.now())),
        (retrying, lambda app: lifecycle.cancel("why", app.clock.now())),
        (retrying, moved),
        (queued, moved),
        (queued, lambda app: lifecycle.move(priority=-3)),
    ],
)
async def test_edit_returns_the_job_as_it_is_stored(
    app: Rota, prepare: Callable[[Rota], Any], edit: Callable[[Rota], Edit]
) -> None:
    job, store = await prepare(app), await app.stores.get()
    after = await job_edits.edit(store, app.clock, job, edit(app))
    assert after == await job_edits.get(store, job.id)


# --- races ---------------------------------------------------------------------------------------


async def test_edit_of_a_job_that_changed_state_reads_it_again(app: Rota) -> None:
    job, store = await queued(app), await app.stores.get()
    want = ClaimRequest(worker="w", tasks=("send",), limit=1, lease_s=60.0)
    await claim(store, want, app.clock.now())
    after = await job_edits.edit(store, app.clock, job, lifecycle.cancel("why", app.clock.now()))
    assert (after.state, after.cancel_requested, after.worker) == (State.RUNNING, True, "w")


async def test_cancel_reaches_a_job_that_was_claimed_and_released_meanwhile(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, store = await queued(app), await app.stores.get()
    want = ClaimRequest(worker="w", tasks=("send",), limit=1, lease_s=60.0)
    (held,) = await claim(store, want, app.clock.now())
    write = store.edit

    async def edit_then_release(*asked: Any) -> Any:
        monkeypatch.undo()
        edited = await write(*asked)
        released = lifecycle.decide(held, lifecycle.Released(), app.clock.now(), 0.0)
        await settle(store, [released], app.clock.now())
        return edited

    monkeypatch.setattr(store, "edit", edit_then_release)
    after = await job_edits.edit(store, app.clock, job, lifecycle.cancel("why", app.clock.now()))
    assert after.state is State.CANCELLED
    assert after == await job_edits.get(store, job.id)


async def test_edit_of_a_job_that_finished_meanwhile_is_rejected(app: Rota) -> None:
    job, store = await queued(app), await app.stores.get()
    await drain(app)
    with pytest.raises(IllegalMove, match="which is succeeded"):
        await job_edits.edit(store, app.clock, job, lifecycle.cancel("why", app.clock.now()))


async def test_edit_of_a_job_that_was_deleted_meanwhile_is_not_found(app: Rota) -> None:
    job, store = await queued(app), await app.stores.get()
    await _delete(store, app, job)
    with pytest.raises(NotFound):
        await job_edits.edit(store, app.clock, job, lifecycle.cancel("why", app.clock.now()))


async def _delete(store: Store, app: Rota, job: Job) -> None:
    assert await store.edit((job.id,), lifecycle.delete(), app.clock.now())


async def test_retry_is_rejected_while_a_newer_job_holds_the_key(app: Rota) -> None:
    first = await cancelled(app)
    await queued(app)
    with pytest.raises(IllegalMove, match="is held by a newer job"):
        await job_edits.edit(await app.stores.get(), app.clock, first, lifecycle.retry(app.clock.now()))
