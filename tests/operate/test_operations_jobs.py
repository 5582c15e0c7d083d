"""Actions on jobs: reads, edits of one and of many, idempotency, tenants, masking, audit."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest
from actors import operations_of

from rota import Context, Rota
from rota.errors import Forbidden, IllegalMove, NotFound, OptionError, PayloadError
from rota.model import State
from rota.operate import Operations
from rota.operate.requests import (
    AuditRequest,
    BulkRequest,
    CancelRequest,
    CountRequest,
    CreateScheduleRequest,
    EnqueueRequest,
    FailuresRequest,
    JobSelector,
    JobsRequest,
    RunsRequest,
    SchedulesRequest,
    TenantRequest,
    UpdateJobRequest,
)
from rota.testing import FakeClock, drain


async def enqueue(operations: Operations, n: int = 1, **given: object) -> list[str]:
    request = EnqueueRequest(task="send", payload={"to": "x"}, **given)  # type: ignore[arg-type]
    return [(await operations.jobs.enqueue(request)).id for _ in range(n)]


async def actions(operations: Operations, **given: object) -> list[tuple[str, str]]:
    page = await operations.system.audit(AuditRequest(**given))  # type: ignore[arg-type]
    return [(entry.action, entry.result) for entry in page.items]


async def test_a_job_is_enqueued_listed_and_shown(operations: Operations) -> None:
    (id,) = await enqueue(operations, queue="mail", tenant="acme", tags=("a",), priority=3)
    shown = await operations.jobs.show(id)
    assert (shown.task, shown.queue, shown.tenant, shown.priority) == ("send", "mail", "acme", 3)
    for request in (
        JobsRequest(),
        JobsRequest(tenant="acme"),
        JobsRequest(tag="a"),
        JobsRequest(state=(State.QUEUED,)),
    ):
        assert [job.id for job in (await operations.jobs.list(request)).items] == [id]
    for request in (
        JobsRequest(tenant="other"),
        JobsRequest(not_task=("send",)),
        JobsRequest(not_queue=("mail",)),
    ):
        assert not (await operations.jobs.list(request)).items


async def test_jobs_are_filtered_by_creation_time(operations: Operations, app: Rota) -> None:
    (first,) = await enqueue(operations)
    middle = app.clock.now() + timedelta(seconds=30)
    assert isinstance(app.clock, FakeClock)
    app.clock.advance(60)
    (second,) = await enqueue(operations)
    assert [job.id for job in (await operations.jobs.list(JobsRequest(since=middle))).items] == [second]
    assert [job.id for job in (await operations.jobs.list(JobsRequest(until=middle))).items] == [first]
    with pytest.raises(OptionError, match="since has no time zone"):
        await operations.jobs.list(JobsRequest(since=middle.replace(tzinfo=None)))


async def test_count_stops_at_its_bound_and_is_not_exact(operations: Operations) -> None:
    await enqueue(operations, 5)
    exact = await operations.jobs.count(CountRequest())
    assert (exact.count, exact.exact) == (5, True)
    capped = await operations.jobs.count(CountRequest(most=3))
    assert (capped.count, capped.exact) == (3, False)


async def test_cancel_and_retry_are_audited_with_before_and_after(operations: Operations) -> None:
    (id,) = await enqueue(operations)
    cancelled = await operations.jobs.cancel(id, CancelRequest(reason="not needed"))
    assert cancelled.state is State.CANCELLED
    assert cancelled.error["message"] == "not needed"
    assert (await operations.jobs.retry(id)).state is State.QUEUED
    page = await operations.system.audit(AuditRequest(object=f"job:{id}"))
    retry, cancel, created = page.items
    assert [one.action for one in page.items] == ["job.retry", "job.cancel", "job.enqueue"]
    assert (cancel.actor, cancel.role, cancel.via, cancel.request_id) == ("ann", "admin", "http", "r-1")
    assert (cancel.before["state"], cancel.after["state"]) == ("queued", "cancelled")
    assert cancel.message == "not needed"
    assert retry.tenant == created.tenant == "default"


async def test_rejected_action_is_audited_too(operations: Operations) -> None:
    (id,) = await enqueue(operations)
    with pytest.raises(IllegalMove, match="only finished jobs"):
        await operations.jobs.retry(id)
    assert ("job.retry", "denied") in await actions(operations)


async def test_move_changes_due_time_priority_and_queue(operations: Operations, app: Rota) -> None:
    (id,) = await enqueue(operations, delay=3600)
    moved = await operations.jobs.move(id, UpdateJobRequest(now=True, priority=9, queue="fast"))
    assert (moved.run_at, moved.priority, moved.queue) == (app.clock.now(), 9, "fast")
    with pytest.raises(OptionError, match="nothing to change"):
        await operations.jobs.move(id, UpdateJobRequest())
    await operations.jobs.cancel(id, CancelRequest())
    with pytest.raises(IllegalMove, match="only queued jobs can be updated"):
        await operations.jobs.move(id, UpdateJobRequest(now=True))


async def test_deleted_job_is_gone_and_its_deletion_audited(operations: Operations) -> None:
    (id,) = await enqueue(operations)
    await operations.jobs.delete(id)
    with pytest.raises(NotFound):
        await operations.jobs.show(id)
    (entry,) = (await operations.system.audit(AuditRequest(action="job.delete"))).items
    assert entry.before["task"] == "send"


# --- many jobs ----------------------------------------------------------------------------------------


async def test_dry_run_counts_and_samples_and_changes_nothing(operations: Operations) -> None:
    await enqueue(operations, 7)
    result = await operations.jobs.bulk(
        BulkRequest(action="cancel", filter=JobSelector(task="send"), dry_run=True)
    )
    assert (result.matched, result.exact, result.done, len(result.sample)) == (7, True, 0, 5)
    assert (await operations.system.stats()).queued == 7
    assert all(action != "jobs.cancel" for action, _ in await actions(operations))


async def test_bulk_action_runs_in_steps_that_can_be_resumed(operations: Operations) -> None:
    await enqueue(operations, 7)
    request = {"action": "cancel", "filter": JobSelector(task="send"), "limit": 3}
    done, cursor, steps = 0, None, 0
    while True:
        step = await operations.jobs.bulk(BulkRequest(**request, cursor=cursor))  # type: ignore[arg-type]
        done, steps = done + step.done, steps + 1
        if (cursor := step.next) is None:
            break
    assert (done, steps) == (7, 3)
    assert (await operations.system.stats()).cancelled == 7


async def test_bulk_retry_ends_although_the_jobs_finish_again_meanwhile(operations: Operations) -> None:
    ids = await enqueue(operations, 4)
    for id in ids:
        await operations.jobs.cancel(id, CancelRequest())
    first = await operations.jobs.bulk(BulkRequest(action="retry", filter=JobSelector(), limit=2))
    for id in ids[:2]:
        await operations.jobs.cancel(id, CancelRequest())  # they end again before the next step
    second = await operations.jobs.bulk(
        BulkRequest(action="retry", filter=JobSelector(), limit=2, cursor=first.next)
    )
    assert (first.done, second.done) == (2, 2)
    assert (await operations.jobs.list(JobsRequest(state=(State.CANCELLED,)))).items[0].id in ids[:2]


async def test_bulk_action_by_ids_skips_jobs_in_other_states(operations: Operations) -> None:
    ids = await enqueue(operations, 3)
    await operations.jobs.cancel(ids[0], CancelRequest())
    result = await operations.jobs.bulk(BulkRequest(action="cancel", ids=tuple(ids)))
    assert (result.matched, result.done) == (2, 2)


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        (BulkRequest(action="cancel"), "give ids or filter"),
        (
            BulkRequest(action="retry", filter=JobSelector(state=(State.QUEUED,))),
            "none of these states allows retry",
        ),
        (BulkRequest(action="move", filter=JobSelector()), "nothing to change"),
        (BulkRequest(action="cancel", ids=("nonsense",)), "is not a job id"),
    ],
)
async def test_invalid_bulk_request_is_rejected(
    operations: Operations, invalid: BulkRequest, message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        await operations.jobs.bulk(invalid)


# --- the same request twice ----------------------------------------------------------------------


async def test_same_idempotency_key_creates_one_job_however_often_it_is_sent(
    operations: Operations,
) -> None:
    request = EnqueueRequest(task="send", payload={"to": "x"}, idempotency_key="order-1")
    jobs = await asyncio.gather(*(operations.jobs.enqueue(request) for _ in range(10)))
    assert len({job.id for job in jobs}) == 1
    await operations.jobs.cancel(jobs[0].id, CancelRequest())
    again = await operations.jobs.enqueue(request)
    assert (again.id, again.state) == (jobs[0].id, State.CANCELLED)
    assert (await operations.jobs.count(CountRequest())).count == 1


async def test_idempotency_key_of_another_request_is_rejected(operations: Operations) -> None:
    await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}, idempotency_key="order-1"))
    with pytest.raises(IllegalMove, match="was used for another request"):
        await operations.jobs.enqueue(
            EnqueueRequest(task="send", payload={"to": "y"}, idempotency_key="order-1")
        )


async def test_two_tenants_may_use_the_same_idempotency_key(operations: Operations) -> None:
    (a,) = await enqueue(operations, tenant="a", idempotency_key="k")
    (b,) = await enqueue(operations, tenant="b", idempotency_key="k")
    assert a != b


# --- tenants, roles, masks -----------------------------------------------------------------------


async def test_another_tenants_job_is_not_found(operations: Operations, app: Rota) -> None:
    (id,) = await enqueue(operations, tenant="acme")
    (own,) = await enqueue(operations, tenant="other")
    other = operations_of(app, "admin", "other")
    for action in (
        other.jobs.show(id),
        other.jobs.why(id),
        other.jobs.attempts(id),
        other.jobs.retry(id),
        other.jobs.cancel(id, CancelRequest()),
        other.jobs.move(id, UpdateJobRequest(now=True)),
        other.jobs.delete(id),
        other.jobs.list(JobsRequest(tenant="acme")),
        other.jobs.enqueue(EnqueueRequest(task="send", tenant="acme")),
    ):
        with pytest.raises(NotFound):
            await action
    assert [job.id for job in (await other.jobs.list(JobsRequest())).items] == [own]
    assert (await other.jobs.count(CountRequest())).count == 1
    result = await other.jobs.bulk(BulkRequest(action="cancel", ids=(id, own)))
    assert result.done == 1
    assert (await operations.jobs.show(id)).state is State.QUEUED


async def test_a_viewer_changes_nothing(operations: Operations, app: Rota) -> None:
    (id,) = await enqueue(operations)
    viewer = operations_of(app, "viewer")
    assert (await viewer.jobs.show(id)).id == id
    for action in (
        viewer.jobs.retry(id),
        viewer.jobs.cancel(id, CancelRequest()),
        viewer.jobs.delete(id),
        viewer.jobs.bulk(BulkRequest(action="cancel", filter=JobSelector())),
        viewer.jobs.enqueue(EnqueueRequest(task="send")),
    ):
        with pytest.raises(Forbidden, match="needs the role operator"):
            await action
    assert (await operations.jobs.show(id)).state is State.QUEUED
    refused = await actions(operations, actor="viewer-None", result="denied")
    assert len(refused) == 5


async def test_payloads_are_hidden_without_permission_and_secrets_from_everyone(
    operations: Operations, app: Rota
) -> None:
    request = EnqueueRequest(task="send", payload={"to": "x", "password": "geheim"})
    id = (await operations.jobs.enqueue(request)).id
    assert (await operations.jobs.show(id)).payload == {"to": "x", "password": "•••"}
    assert "hidden" in (await operations_of(app, "viewer").jobs.show(id)).payload


async def test_payload_search_requires_permission_and_never_matches_a_secret(
    operations: Operations, app: Rota
) -> None:
    wanted = await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "a@b.example"}))
    await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "other", "password": "geheim"}))
    found = await operations.jobs.list(JobsRequest(payload=("to=a@b.example",)))
    assert [job.id for job in found.items] == [wanted.id]
    with pytest.raises(Forbidden, match="requires the permission"):
        await operations_of(app, "viewer").jobs.list(JobsRequest(payload=("to=x",)))
    with pytest.raises(Forbidden, match="is secret"):
        await operations.jobs.list(JobsRequest(payload=("password=geheim",)))
    for escaped in (r"pass\u0077ord=geheim", r"pass\x77ord=geheim"):
        with pytest.raises(OptionError, match="without backslashes"):
            await operations.jobs.count(CountRequest(payload=(escaped,)))
    for wrong in ("to", "=x", "a..b=x", "to\0=x"):
        with pytest.raises(OptionError, match="write it as"):
            await operations.jobs.list(JobsRequest(payload=(wrong,)))


async def test_idempotency_key_does_not_recreate_a_removed_job(operations: Operations, app: Rota) -> None:
    request = EnqueueRequest(task="send", payload={"to": "x"}, auto_remove=True, idempotency_key="once")
    job = await operations.jobs.enqueue(request)
    assert await drain(app) == 1
    with pytest.raises(NotFound):
        await operations.jobs.show(job.id)
    with pytest.raises(IllegalMove, match="has been removed since"):
        await operations.jobs.enqueue(request)
    assert await drain(app) == 0


async def test_rejected_request_does_not_use_up_its_idempotency_key(operations: Operations) -> None:
    with pytest.raises(PayloadError):
        await operations.jobs.enqueue(
            EnqueueRequest(task="send", payload={"unknown": 1}, idempotency_key="k")
        )
    created = await operations.jobs.enqueue(
        EnqueueRequest(task="send", payload={"to": "x"}, idempotency_key="k")
    )
    assert created.state is State.QUEUED


async def test_bulk_action_skips_jobs_created_while_it_runs(operations: Operations) -> None:
    await enqueue(operations, 2)
    first = await operations.jobs.bulk(BulkRequest(action="cancel", filter=JobSelector(), limit=1))
    await enqueue(operations, 3)
    second = await operations.jobs.bulk(
        BulkRequest(action="cancel", filter=JobSelector(), limit=10, cursor=first.next)
    )
    assert (first.done, second.done, second.next) == (1, 1, None)


async def test_bulk_action_is_audited_with_its_jobs(operations: Operations) -> None:
    ids = await enqueue(operations, 2)
    await operations.jobs.bulk(
        BulkRequest(action="move", ids=tuple(ids), move=UpdateJobRequest(queue="other"))
    )
    await operations.jobs.bulk(BulkRequest(action="cancel", ids=tuple(ids), reason="not needed"))
    cancel, move = (await operations.system.audit(AuditRequest(action="jobs."))).items
    assert move.before["move"]["queue"] == "other"
    assert (cancel.message, sorted(cancel.after["jobs"])) == ("not needed", sorted(ids))


async def test_action_on_another_tenants_job_is_audited(operations: Operations, app: Rota) -> None:
    (id,) = await enqueue(operations, tenant="acme")
    with pytest.raises(NotFound):
        await operations_of(app, "operator", "other").jobs.cancel(id, CancelRequest())
    (entry,) = (await operations.system.audit(AuditRequest(action="job.cancel"))).items
    assert (entry.actor, entry.tenant, entry.object, entry.result) == (
        "operator-other", "other", f"job:{id}", "denied",
    )  # fmt: skip


async def test_move_checks_the_name_of_the_queue(operations: Operations) -> None:
    (id,) = await enqueue(operations)
    with pytest.raises(OptionError, match="queue"):
        await operations.jobs.move(id, UpdateJobRequest(queue="a\x1b[2Jb"))


async def test_payload_search_never_matches_a_whole_object(operations: Operations) -> None:
    await operations.jobs.enqueue(EnqueueRequest(task="other", payload={"login": {"password": "hunter22"}}))
    for search in ('login={"password":"hunter22"}', 'login={"password": "hunter22"}'):
        assert not (await operations.jobs.list(JobsRequest(payload=(search,)))).items


async def test_an_error_that_quotes_a_payload_is_hidden_without_payload_permission(
    operations: Operations, app: Rota
) -> None:
    @app.task(max_attempts=1)
    async def charge(ctx: Context, card: str) -> None:
        ctx.log(f"card {card}")
        ctx.progress(50, f"charging {card}")
        ctx.audit("card.charged", card=card)
        raise LookupError(f"no account for {card}")

    await operations.schedules.create(
        CreateScheduleRequest(name="c", task="charge", every=60.0, payload={"card": "4111-canary"})
    )
    id = (await operations.schedules.trigger("c", TenantRequest())).id
    await drain(app)
    blind = operations_of(app, "operator")
    everything = [
        await blind.jobs.show(id),
        await blind.jobs.list(JobsRequest()),
        await blind.jobs.attempts(id),
        await blind.jobs.why(id),
        await blind.jobs.failures(FailuresRequest()),
        await blind.schedules.runs(RunsRequest()),
        await blind.schedules.list(SchedulesRequest(last_run=True)),
        await blind.system.audit(AuditRequest()),
    ]
    for shown in everything:
        assert b"4111-canary" not in msgspec.json.encode(shown), shown
    assert (await blind.jobs.show(id)).error["type"] == "LookupError"
    (group,) = (await blind.jobs.failures(FailuresRequest())).items
    assert (group.type, group.count) == ("LookupError", 1)
    for asked in (blind.jobs.list(JobsRequest(error="4111")), blind.jobs.count(CountRequest(error="4111"))):
        with pytest.raises(Forbidden, match="searching in errors requires"):
            await asked
    with pytest.raises(Forbidden, match="searching in errors requires"):
        await blind.jobs.bulk(BulkRequest(action="retry", filter=JobSelector(error="4111")))
    assert "4111-canary" in (await operations.jobs.show(id)).error["message"]
