"""``rota jobs why`` on a store: which facts are read, and what a tenant learns of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from actors import operations_of

from rota import Rota
from rota.model import ClaimRequest, Limit, LimitRule, Settlement, State, TenantRule
from rota.operate import Operations, why_facts
from rota.store.calls import claim, settle


async def rule(app: Rota, *rules: LimitRule | TenantRule) -> None:
    assert None not in await (await app.stores.get()).put_rules(rules, app.clock.now())


async def running(app: Rota, **options: Any) -> str:
    """The id of a job that worker w1 runs."""
    job = await app.enqueue("send", {"to": "x"}, **options)
    wanted = ClaimRequest(worker="w1", limit=1, lease_s=60)
    (claimed,) = await claim(await app.stores.get(), wanted, app.clock.now())
    assert claimed.id == job.id
    return job.id


async def test_why_names_the_holder_of_a_full_key(app: Rota, operations: Operations) -> None:
    holder = await running(app, concurrency_key="account:42")
    waiting = await app.enqueue("send", {"to": "x"}, concurrency_key="account:42")
    await rule(app, LimitRule(name="key:account:*", chosen=Limit(running=1)))
    why = await operations.jobs.why(waiting.id)
    reason = why.reasons[0]
    assert (reason.code, reason.blocker) == ("limit_full", holder)
    assert f"is full (1 of 1): held by job {holder} on worker w1 since" in reason.text


async def test_why_counts_the_jobs_of_a_full_key_that_come_before(app: Rota, operations: Operations) -> None:
    await running(app, concurrency_key="a")
    await rule(app, LimitRule(name="key:a", chosen=Limit(running=1)))
    first = await app.enqueue("send", {"to": "x"}, concurrency_key="a")
    await app.enqueue("send", {"to": "x"}, concurrency_key="b")
    later = app.clock.now() + timedelta(hours=1)
    await app.enqueue("send", {"to": "x"}, concurrency_key="a", priority=9, run_at=later)
    last = await app.enqueue("send", {"to": "x"}, concurrency_key="a")
    await app.enqueue("send", {"to": "x"}, concurrency_key="a", priority=5)
    texts = [(await operations.jobs.why(job.id)).reasons[0].text for job in (first, last)]
    assert [text.partition("UTC. ")[2] for text in texts] == [
        "1 waiting job of this key comes before it.",
        "2 waiting jobs of this key come before it.",
    ]


async def test_why_says_that_a_full_key_has_more_jobs_than_it_counted(
    app: Rota, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(why_facts, "MOST_BEFORE", 2)
    await running(app, concurrency_key="a")
    await rule(app, LimitRule(name="key:a", chosen=Limit(running=1)))
    jobs = [await app.enqueue("send", {"to": "x"}, concurrency_key="a", priority=-n) for n in range(4)]
    text = (await operations.jobs.why(jobs[-1].id)).reasons[0].text
    assert text.endswith("2 or more waiting jobs of this key come before it.")


@pytest.mark.parametrize("scope", ["queue:mail", "tenant:acme"])
async def test_a_tenant_learns_of_a_full_limit_but_not_of_others_jobs(
    app: Rota, operations: Operations, scope: str
) -> None:
    await running(app, queue="mail", tenant="acme" if scope == "tenant:acme" else "other")
    waiting = await app.enqueue("send", {"to": "x"}, queue="mail", tenant="acme")
    await rule(app, LimitRule(name=scope, chosen=Limit(running=1)))
    told = (await operations_of(app, "admin", "acme").jobs.why(waiting.id)).reasons[0]
    assert told.code == "limit_full"
    if scope == "tenant:acme":
        assert "is full (1 of 1): held by job" in told.text
    else:
        assert (told.text, told.blocker) == (f"Limit {scope} is full.", None)
    seen = (await operations.jobs.why(waiting.id)).reasons[0]
    assert "is full (1 of 1): held by job" in seen.text


async def test_why_names_the_retry_that_a_strict_key_waits_for(app: Rota, operations: Operations) -> None:
    store, clock = await app.stores.get(), app.clock
    first = await app.enqueue("send", {"to": "x"}, concurrency_key="a")
    (job,) = await claim(store, ClaimRequest(worker="w1", limit=1, lease_s=60), clock.now())
    later = Settlement(
        job.id, job.lease_token, "w1", job.queue, job.task, job.tenant, job.key, State.QUEUED, 1,
        run_at=clock.now().replace(year=2090), started_at=clock.now(),
    )  # fmt: skip
    assert not await settle(store, [later], clock.now())
    second = await app.enqueue("send", {"to": "x"}, concurrency_key="a")
    await rule(app, LimitRule(name="key:a", chosen=Limit(running=1, strict=True)))
    (reason, *_) = (await operations.jobs.why(second.id)).reasons
    assert (reason.code, reason.blocker, reason.limit) == ("strict", first.id, "key:a")


async def test_why_says_that_a_budget_is_spent(app: Rota, operations: Operations) -> None:
    await rule(app, TenantRule(name="acme", budget=5.0, period="day"))
    job = await app.enqueue("send", {"to": "x"}, tenant="acme", price=6)
    (reason, *_) = (await operations.jobs.why(job.id)).reasons
    assert reason.code == "budget" and reason.clears_at is not None
    assert reason.text == "Tenant acme has spent 0.00 of 0.05 today; the price of this job is 0.06."


async def test_why_says_what_is_reserved_of_a_budget_whatever_else_runs(
    app: Rota, operations: Operations
) -> None:
    await rule(app, TenantRule(name="acme", budget=5.0, period="day"))
    for tenant in ("other", "acme"):
        await running(app, tenant=tenant, price=4)
    job = await app.enqueue("send", {"to": "x"}, tenant="acme", price=3)
    (reason, *_) = (await operations.jobs.why(job.id)).reasons
    assert reason.text == (
        "Tenant acme has spent 0.00 and reserved 0.04 of 0.05 today; the price of this job is 0.03."
    )
