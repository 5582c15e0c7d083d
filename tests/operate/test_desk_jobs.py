"""Jobs at the desk: looking, acting on one and on many, idempotency, tenants, masks, audit."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from desks import desk_of

from rota import Rota
from rota.errors import Forbidden, IllegalMove, NotFound, OptionError, PayloadError
from rota.model import State
from rota.operate import Desk
from rota.operate.asks import (
    AuditAsk,
    BulkAsk,
    CancelAsk,
    CountAsk,
    EnqueueAsk,
    JobMatch,
    JobsAsk,
    MoveAsk,
)
from rota.testing import FakeClock, drain


async def enqueue(desk: Desk, n: int = 1, **given: object) -> list[str]:
    ask = EnqueueAsk(task="send", payload={"to": "x"}, **given)  # type: ignore[arg-type]
    return [(await desk.jobs.enqueue(ask)).id for _ in range(n)]


async def actions(desk: Desk, **given: object) -> list[tuple[str, str]]:
    page = await desk.house.audit(AuditAsk(**given))  # type: ignore[arg-type]
    return [(entry.action, entry.result) for entry in page.items]


async def test_a_job_is_enqueued_listed_and_shown(desk: Desk) -> None:
    (id,) = await enqueue(desk, queue="mail", tenant="acme", tags=("a",), priority=3)
    shown = await desk.jobs.show(id)
    assert (shown.task, shown.queue, shown.tenant, shown.priority) == ("send", "mail", "acme", 3)
    for ask in (JobsAsk(), JobsAsk(tenant="acme"), JobsAsk(tag="a"), JobsAsk(state=(State.QUEUED,))):
        assert [job.id for job in (await desk.jobs.list(ask)).items] == [id]
    for ask in (JobsAsk(tenant="other"), JobsAsk(not_task=("send",)), JobsAsk(not_queue=("mail",))):
        assert not (await desk.jobs.list(ask)).items


async def test_jobs_are_found_by_when_they_were_made(desk: Desk, app: Rota) -> None:
    (first,) = await enqueue(desk)
    middle = app.clock.now() + timedelta(seconds=30)
    assert isinstance(app.clock, FakeClock)
    app.clock.advance(60)
    (second,) = await enqueue(desk)
    assert [job.id for job in (await desk.jobs.list(JobsAsk(since=middle))).items] == [second]
    assert [job.id for job in (await desk.jobs.list(JobsAsk(until=middle))).items] == [first]
    with pytest.raises(OptionError, match="since has no time zone"):
        await desk.jobs.list(JobsAsk(since=middle.replace(tzinfo=None)))


async def test_counting_stops_at_its_bound_and_says_so(desk: Desk) -> None:
    await enqueue(desk, 5)
    exact = await desk.jobs.count(CountAsk())
    assert (exact.count, exact.exact) == (5, True)
    capped = await desk.jobs.count(CountAsk(most=3))
    assert (capped.count, capped.exact) == (3, False)


async def test_cancel_and_retry_are_told_with_before_and_after(desk: Desk) -> None:
    (id,) = await enqueue(desk)
    cancelled = await desk.jobs.cancel(id, CancelAsk(reason="not needed"))
    assert cancelled.state is State.CANCELLED
    assert cancelled.error["message"] == "not needed"
    assert (await desk.jobs.retry(id)).state is State.QUEUED
    page = await desk.house.audit(AuditAsk(object=f"job:{id}"))
    retry, cancel, made = page.items
    assert [one.action for one in page.items] == ["job.retry", "job.cancel", "job.enqueue"]
    assert (cancel.actor, cancel.role, cancel.via, cancel.request_id) == ("ann", "admin", "http", "r-1")
    assert (cancel.before["state"], cancel.after["state"]) == ("queued", "cancelled")
    assert cancel.message == "not needed"
    assert retry.tenant == made.tenant == "default"


async def test_what_is_refused_is_in_the_audit_log_too(desk: Desk) -> None:
    (id,) = await enqueue(desk)
    with pytest.raises(IllegalMove, match="only jobs that have ended"):
        await desk.jobs.retry(id)
    assert ("job.retry", "refused") in await actions(desk)


async def test_a_queued_job_is_moved_in_time_urgency_and_place(desk: Desk, app: Rota) -> None:
    (id,) = await enqueue(desk, delay=3600)
    moved = await desk.jobs.move(id, MoveAsk(now=True, priority=9, queue="fast"))
    assert (moved.run_at, moved.priority, moved.queue) == (app.clock.now(), 9, "fast")
    with pytest.raises(OptionError, match="nothing to change"):
        await desk.jobs.move(id, MoveAsk())
    await desk.jobs.cancel(id, CancelAsk())
    with pytest.raises(IllegalMove, match="only queued jobs can be moved"):
        await desk.jobs.move(id, MoveAsk(now=True))


async def test_a_deleted_job_is_gone_and_the_log_remembers_it(desk: Desk) -> None:
    (id,) = await enqueue(desk)
    await desk.jobs.delete(id)
    with pytest.raises(NotFound):
        await desk.jobs.show(id)
    (entry,) = (await desk.house.audit(AuditAsk(action="job.delete"))).items
    assert entry.before["task"] == "send"


# --- many ----------------------------------------------------------------------------------------


async def test_a_dry_run_counts_and_shows_a_sample_and_changes_nothing(desk: Desk) -> None:
    await enqueue(desk, 7)
    told = await desk.jobs.bulk(BulkAsk(action="cancel", filter=JobMatch(task="send"), dry_run=True))
    assert (told.matched, told.exact, told.done, len(told.sample)) == (7, True, 0, 5)
    assert (await desk.house.stats()).queued == 7
    assert all(action != "jobs.cancel" for action, _ in await actions(desk))


async def test_many_jobs_are_handled_in_steps_that_can_be_resumed(desk: Desk) -> None:
    await enqueue(desk, 7)
    ask = {"action": "cancel", "filter": JobMatch(task="send"), "limit": 3}
    done, cursor, steps = 0, None, 0
    while True:
        step = await desk.jobs.bulk(BulkAsk(**ask, cursor=cursor))  # type: ignore[arg-type]
        done, steps = done + step.done, steps + 1
        if (cursor := step.next) is None:
            break
    assert (done, steps) == (7, 3)
    assert (await desk.house.stats()).cancelled == 7


async def test_a_bulk_retry_ends_although_the_jobs_fail_again_meanwhile(desk: Desk) -> None:
    ids = await enqueue(desk, 4)
    for id in ids:
        await desk.jobs.cancel(id, CancelAsk())
    first = await desk.jobs.bulk(BulkAsk(action="retry", filter=JobMatch(), limit=2))
    for id in ids[:2]:
        await desk.jobs.cancel(id, CancelAsk())  # they end again before the next step
    second = await desk.jobs.bulk(BulkAsk(action="retry", filter=JobMatch(), limit=2, cursor=first.next))
    assert (first.done, second.done) == (2, 2)
    assert (await desk.jobs.list(JobsAsk(state=(State.CANCELLED,)))).items[0].id in ids[:2]


async def test_a_bulk_action_by_ids_leaves_out_what_it_cannot_touch(desk: Desk) -> None:
    ids = await enqueue(desk, 3)
    await desk.jobs.cancel(ids[0], CancelAsk())
    told = await desk.jobs.bulk(BulkAsk(action="cancel", ids=tuple(ids)))
    assert (told.matched, told.done) == (2, 2)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (BulkAsk(action="cancel"), "give ids or filter"),
        (BulkAsk(action="retry", filter=JobMatch(state=(State.QUEUED,))), "none of these states"),
        (BulkAsk(action="move", filter=JobMatch()), "nothing to change"),
        (BulkAsk(action="cancel", ids=("nonsense",)), "is not a job id"),
    ],
)
async def test_a_bulk_request_that_makes_no_sense_is_refused(desk: Desk, ask: BulkAsk, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        await desk.jobs.bulk(ask)


# --- the same request twice ----------------------------------------------------------------------


async def test_the_same_idempotency_key_makes_one_job_however_often_it_is_sent(desk: Desk) -> None:
    ask = EnqueueAsk(task="send", payload={"to": "x"}, idempotency_key="order-1")
    jobs = await asyncio.gather(*(desk.jobs.enqueue(ask) for _ in range(10)))
    assert len({job.id for job in jobs}) == 1
    await desk.jobs.cancel(jobs[0].id, CancelAsk())
    again = await desk.jobs.enqueue(ask)
    assert (again.id, again.state) == (jobs[0].id, State.CANCELLED)
    assert (await desk.jobs.count(CountAsk())).count == 1


async def test_another_request_under_the_same_key_is_refused(desk: Desk) -> None:
    await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "x"}, idempotency_key="order-1"))
    with pytest.raises(IllegalMove, match="was used for another request"):
        await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "y"}, idempotency_key="order-1"))


async def test_two_tenants_may_use_the_same_idempotency_key(desk: Desk) -> None:
    (a,) = await enqueue(desk, tenant="a", idempotency_key="k")
    (b,) = await enqueue(desk, tenant="b", idempotency_key="k")
    assert a != b


# --- tenants, roles, masks -----------------------------------------------------------------------


async def test_another_tenants_job_is_as_if_it_were_not_there(desk: Desk, app: Rota) -> None:
    (id,) = await enqueue(desk, tenant="acme")
    (own,) = await enqueue(desk, tenant="other")
    other = desk_of(app, "admin", "other")
    for act in (
        other.jobs.show(id),
        other.jobs.why(id),
        other.jobs.attempts(id),
        other.jobs.retry(id),
        other.jobs.cancel(id, CancelAsk()),
        other.jobs.move(id, MoveAsk(now=True)),
        other.jobs.delete(id),
        other.jobs.list(JobsAsk(tenant="acme")),
        other.jobs.enqueue(EnqueueAsk(task="send", tenant="acme")),
    ):
        with pytest.raises(NotFound):
            await act
    assert [job.id for job in (await other.jobs.list(JobsAsk())).items] == [own]
    assert (await other.jobs.count(CountAsk())).count == 1
    told = await other.jobs.bulk(BulkAsk(action="cancel", ids=(id, own)))
    assert told.done == 1
    assert (await desk.jobs.show(id)).state is State.QUEUED


async def test_a_viewer_changes_nothing(desk: Desk, app: Rota) -> None:
    (id,) = await enqueue(desk)
    viewer = desk_of(app, "viewer")
    assert (await viewer.jobs.show(id)).id == id
    for act in (
        viewer.jobs.retry(id),
        viewer.jobs.cancel(id, CancelAsk()),
        viewer.jobs.delete(id),
        viewer.jobs.bulk(BulkAsk(action="cancel", filter=JobMatch())),
        viewer.jobs.enqueue(EnqueueAsk(task="send")),
    ):
        with pytest.raises(Forbidden, match="needs the role operator"):
            await act
    assert (await desk.jobs.show(id)).state is State.QUEUED
    refused = await actions(desk, actor="viewer-None", result="refused")
    assert len(refused) == 5


async def test_payloads_are_hidden_from_who_may_not_see_them_and_secrets_from_all(
    desk: Desk, app: Rota
) -> None:
    ask = EnqueueAsk(task="send", payload={"to": "x", "password": "geheim"})
    id = (await desk.jobs.enqueue(ask)).id
    assert (await desk.jobs.show(id)).payload == {"to": "x", "password": "•••"}
    assert "hidden" in (await desk_of(app, "viewer").jobs.show(id)).payload


async def test_payloads_are_searched_by_who_may_see_them_and_never_by_a_secret(desk: Desk, app: Rota) -> None:
    wanted = await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "a@b.example"}))
    await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "other", "password": "geheim"}))
    found = await desk.jobs.list(JobsAsk(payload=("to=a@b.example",)))
    assert [job.id for job in found.items] == [wanted.id]
    with pytest.raises(Forbidden, match="needs the permission"):
        await desk_of(app, "viewer").jobs.list(JobsAsk(payload=("to=x",)))
    with pytest.raises(Forbidden, match="is secret"):
        await desk.jobs.list(JobsAsk(payload=("password=geheim",)))
    for wrong in ("to", "=x", "a..b=x"):
        with pytest.raises(OptionError, match="write it as"):
            await desk.jobs.list(JobsAsk(payload=(wrong,)))


async def test_a_key_does_not_make_its_job_again_when_that_was_removed(desk: Desk, app: Rota) -> None:
    ask = EnqueueAsk(task="send", payload={"to": "x"}, auto_remove=True, idempotency_key="once")
    job = await desk.jobs.enqueue(ask)
    assert await drain(app) == 1
    with pytest.raises(NotFound):
        await desk.jobs.show(job.id)
    with pytest.raises(IllegalMove, match="has been removed since"):
        await desk.jobs.enqueue(ask)
    assert await drain(app) == 0


async def test_a_request_that_was_refused_does_not_use_up_its_key(desk: Desk) -> None:
    with pytest.raises(PayloadError):
        await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"nobody": 1}, idempotency_key="k"))
    made = await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "x"}, idempotency_key="k"))
    assert made.state is State.QUEUED


async def test_a_bulk_action_leaves_alone_what_is_made_while_it_goes_on(desk: Desk) -> None:
    await enqueue(desk, 2)
    first = await desk.jobs.bulk(BulkAsk(action="cancel", filter=JobMatch(), limit=1))
    await enqueue(desk, 3)
    second = await desk.jobs.bulk(BulkAsk(action="cancel", filter=JobMatch(), limit=10, cursor=first.next))
    assert (first.done, second.done, second.next) == (1, 1, None)


async def test_the_log_tells_what_a_bulk_action_did(desk: Desk) -> None:
    ids = await enqueue(desk, 2)
    await desk.jobs.bulk(BulkAsk(action="move", ids=tuple(ids), move=MoveAsk(queue="other")))
    await desk.jobs.bulk(BulkAsk(action="cancel", ids=tuple(ids), reason="not needed"))
    cancel, move = (await desk.house.audit(AuditAsk(action="jobs."))).items
    assert move.before["move"]["queue"] == "other"
    assert (cancel.message, sorted(cancel.after["jobs"])) == ("not needed", sorted(ids))


async def test_an_attempt_at_another_tenants_job_is_told_in_the_log(desk: Desk, app: Rota) -> None:
    (id,) = await enqueue(desk, tenant="acme")
    with pytest.raises(NotFound):
        await desk_of(app, "operator", "other").jobs.cancel(id, CancelAsk())
    (told,) = (await desk.house.audit(AuditAsk(action="job.cancel"))).items
    assert (told.actor, told.tenant, told.object, told.result) == (
        "operator-other", "other", f"job:{id}", "refused",
    )  # fmt: skip


async def test_the_name_of_a_queue_is_checked_when_a_job_is_moved(desk: Desk) -> None:
    (id,) = await enqueue(desk)
    with pytest.raises(OptionError, match="queue"):
        await desk.jobs.move(id, MoveAsk(queue="a\x1b[2Jb"))


async def test_a_search_in_payloads_never_matches_a_whole_object(desk: Desk) -> None:
    await desk.jobs.enqueue(EnqueueAsk(task="other", payload={"auth": {"password": "hunter22"}}))
    for said in ('auth={"password":"hunter22"}', 'auth={"password": "hunter22"}'):
        assert not (await desk.jobs.list(JobsAsk(payload=(said,)))).items
