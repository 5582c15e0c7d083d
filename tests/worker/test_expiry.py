"""Jobs that expire before they begin, snoozes that are bounded, and jobs kept by their own retention."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import JobCancelled, OptionError, Rota, Snooze, State, operate
from rota.model import AuditFilter, JobFilter, PageRequest
from rota.testing import FakeClock, drain
from rota.worker import maintenance


async def actions(app: Rota) -> list[str]:
    store = await app.stores.get()
    return [entry.action for entry in (await store.audit(AuditFilter(), PageRequest())).items]


@pytest.mark.parametrize("expires", [900, "15m", timedelta(minutes=15)])
async def test_a_job_that_a_worker_claims_too_late_does_not_run(
    app: Rota, clock: FakeClock, expires: Any
) -> None:
    ran: list[int] = []
    events: list[Any] = []
    app.on("job.cancelled")(events.append)

    @app.task(expires=expires)
    async def work(n: int) -> None:
        ran.append(n)

    late, timely = await work.enqueue(1), await work.options(expires="1h").enqueue(2)
    assert late.expires_at == clock.now() + timedelta(minutes=15)
    clock.advance(900)
    await drain(app)
    late = await late.refresh()
    assert ran == [2] and (await timely.refresh()).state == "succeeded"
    assert (late.state, late.attempt, late.error["type"]) == ("cancelled", 0, "Expired")
    assert not await operate.attempts(await app.stores.get(), late)
    with pytest.raises(JobCancelled, match="expired before it began"):
        await late.result(timeout=5)
    assert [event.job.id for event in events] == [late.id]
    assert await actions(app) == ["job.expired"]


async def test_a_job_that_no_worker_claims_is_cancelled_all_the_same(app: Rota, clock: FakeClock) -> None:
    at = clock.now() + timedelta(minutes=15)
    job = await app.enqueue("unknown", {}, expires=at)
    store = await app.stores.get()
    assert await maintenance.expire(store, clock, "w") == []
    clock.advance(901)
    (ended,) = await maintenance.expire(store, clock, "w")
    assert (ended.id, ended.state, ended.error["message"]) == (job.id, "cancelled", "expired before it began")
    assert (await job.refresh()).state == "cancelled"
    assert await actions(app) == ["job.expired"]


async def test_a_job_that_has_begun_may_take_as_long_as_it_likes(app: Rota, clock: FakeClock) -> None:
    @app.task(expires=60, max_attempts=2)
    async def work() -> str:
        if clock.now() < began + timedelta(hours=1):
            raise ValueError("not yet")
        return "done"

    began = clock.now()
    job = await work.enqueue()
    await drain(app)
    clock.advance(3600)
    assert await maintenance.expire(await app.stores.get(), clock, "w") == []
    await drain(app)
    assert (await job.refresh()).output == "done"


async def test_an_expiry_counts_from_when_the_job_is_due(app: Rota, clock: FakeClock) -> None:
    @app.task(expires="15m")
    async def work() -> None: ...

    job = await work.options(delay=3600).enqueue()
    assert job.expires_at == clock.now() + timedelta(minutes=75)


async def test_the_job_of_a_schedule_expires_after_its_fire_time(app: Rota, clock: FakeClock) -> None:
    @app.every("1h", expires="15m", keep="2d")
    async def work() -> None: ...

    await drain(app)
    clock.advance(3600)
    await drain(app)
    store = await app.stores.get()
    (job,) = (await store.jobs(JobFilter(task="work"), PageRequest())).items
    assert job.scheduled_for is not None and job.expires_at is not None
    assert (job.state, job.keep) == ("succeeded", 2 * 86400)
    assert job.expires_at - job.scheduled_for == timedelta(minutes=15)


@pytest.mark.parametrize("reason", [None, "still locked"])
async def test_one_snooze_too_many_fails_the_job(app: Rota, clock: FakeClock, reason: str | None) -> None:
    @app.task(max_snoozes=2)
    async def work() -> None:
        raise Snooze(10, reason)

    job = await work.enqueue()
    for n in (1, 2):
        await drain(app)
        job = await job.refresh()
        assert (job.state, job.snoozes, job.attempt) == ("queued", n, 0)
        clock.advance(10)
    await drain(app)
    job = await job.refresh()
    assert (job.state, job.error["type"]) == (State.FAILED, "SnoozedTooOften")
    assert job.error["message"].startswith("snoozed 2 times, as often as max_snoozes allows")
    assert (reason or "allows") in job.error["message"]


@pytest.mark.parametrize(("keep", "seconds"), [("2d", 172800.0), (0, 0.0), ("forever", 100 * 365 * 86400.0)])
async def test_a_task_says_how_long_its_jobs_are_kept(app: Rota, keep: Any, seconds: float) -> None:
    @app.task(keep=keep)
    async def work() -> None: ...

    assert (await work.enqueue()).keep == seconds


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"expires": "soon"}, "expires='soon': is not a duration"),
        ({"expires": -1}, "expires=-1: is out of range"),
        ({"expires": datetime(2030, 1, 1)}, "has no time zone"),
        ({"keep": "ever"}, "keep='ever': is not a duration"),
        ({"expires": datetime(2001, 1, 1, tzinfo=UTC), "delay": 60}, "is before the job is due"),
        ({"max_snoozes": 3}, "belongs to the task's code"),
    ],
)
async def test_a_wrong_expiry_or_retention_is_refused(app: Rota, given: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        await app.enqueue("work", {}, **given)


def test_a_task_cannot_expire_at_one_moment(app: Rota) -> None:
    with pytest.raises(OptionError, match="expires must be a duration"):
        app.task(name="work", expires=datetime(2030, 1, 1, tzinfo=UTC))(lambda: None)  # type: ignore[call-overload]
