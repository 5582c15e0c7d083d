"""Why a due job may not begin: which limits, rates and budgets hold it up, and until when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.core.jobs.why import Why, WhyFacts, WorkerFacts, explain
from rota.core.jobs.why_limits import BudgetFacts, LimitFacts
from rota.model import Held, Job, State, TenantRule, TenantUse

NOW = datetime(2030, 1, 31, 8, 0, tzinfo=UTC)
ABLE = WorkerFacts(id="w1", tasks=("send",), concurrency=4, running=1)
ID = "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60"
OTHER = "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f61"


def job(**given: Any) -> Job:
    base: dict[str, Any] = {
        "id": ID, "task": "send", "state": State.QUEUED, "queue": "mail", "tenant": "acme",
        "run_at": NOW - timedelta(seconds=5), "created_at": NOW - timedelta(seconds=5),
    }  # fmt: skip
    return Job(**{**base, **given})


HOLDER = job(id=OTHER, state=State.RUNNING, worker="w7", started_at=NOW - timedelta(minutes=2))


def why(subject: Job | None = None, **facts: Any) -> Why:
    return explain(WhyFacts(job=subject or job(), now=NOW, workers=[ABLE], **facts))


def limit(name: str = "key:account:42", **given: Any) -> Held:
    return Held(**{"name": name, "running": 0, "most": None, "rule": name, **given})


def test_a_full_limit_names_the_job_that_holds_it() -> None:
    full = LimitFacts(held=limit(running=1, most=1, rule="key:account:*"), holders=[HOLDER])
    told = why(limits=[full])
    (reason,) = told.reasons
    assert (reason.code, reason.limit, reason.blocker) == ("limit_full", "key:account:42", OTHER)
    assert reason.text == (
        f"Limit key:account:42 (of key:account:*) is full (1 of 1): held by job {OTHER} on worker w7 "
        "since 2030-01-31 07:58:00 UTC."
    )
    assert "rota limits set 'key:account:*' --running 2" in (reason.remedy or "")
    assert (told.likely_start_at, reason.clears_at) == (None, None)


@pytest.mark.parametrize(
    ("before", "has_more", "text"),
    [
        (1, False, "UTC. 1 waiting job of this key comes before it."),
        (12, False, "UTC. 12 waiting jobs of this key come before it."),
        (1000, True, "UTC. 1,000 or more waiting jobs of this key come before it."),
    ],
)
def test_a_full_key_says_how_many_jobs_come_before(before: int, has_more: bool, text: str) -> None:
    full = LimitFacts(held=limit(running=1, most=1), holders=[HOLDER], before=before, has_more=has_more)
    assert why(limits=[full]).summary.endswith(text)
    hidden = LimitFacts(held=limit(running=1, most=1), before=before, is_shared=True)
    assert why(limits=[hidden]).summary.endswith("is full.")


def test_a_limit_that_was_lowered_is_full_and_the_other_holders_are_counted() -> None:
    full = LimitFacts(held=limit("queue:mail", running=45, most=40), holders=[HOLDER])
    assert "is full (45 of 40)" in why(limits=[full]).summary
    assert why(limits=[full]).summary.endswith("since 2030-01-31 07:58:00 UTC and 44 others.")


def test_a_tenant_does_not_learn_how_much_of_a_shared_limit_is_in_use() -> None:
    full = LimitFacts(held=limit("queue:mail", running=40, most=40), is_shared=True)
    (reason,) = why(limits=[full]).reasons
    assert (reason.text, reason.remedy) == (
        "Limit queue:mail is full.",
        "It begins when a job under it ends.",
    )


def test_the_command_that_raises_a_limit_keeps_the_rest_of_it() -> None:
    both = limit(running=1, most=1, rate="10/s", burst=20, tokens=20.0, strict=True, rule="key:account:*")
    (reason,) = why(limits=[LimitFacts(held=both, holders=[HOLDER])]).reasons
    assert (reason.remedy or "").endswith(
        "rota limits set 'key:account:*' --running 2 --rate 10/s --burst 20 --strict"
    )


def test_limits_that_admit_more_are_not_in_the_way() -> None:
    told = why(limits=[LimitFacts(held=limit(running=1, most=2, rate="10/s", burst=10, tokens=1.0))])
    assert [reason.code for reason in told.reasons] == ["next"]
    assert "no limit is full" in told.fine


def test_a_rate_says_when_the_next_token_comes() -> None:
    at = NOW + timedelta(seconds=0.4)
    used_up = limit("queue:mail", rate="100/m", burst=1, tokens=0.4, next_token_at=at)
    (reason,) = why(limits=[LimitFacts(held=used_up)]).reasons
    assert (reason.code, reason.clears_at, reason.limit) == ("rate", at, "queue:mail")
    assert reason.text == (
        "The rate of queue:mail (100/m) is used up: the next token comes at 2030-01-31 08:00:00 UTC."
    )


def test_a_job_of_many_units_waits_for_all_of_them() -> None:
    used_up = limit("key:openai", rate="600/m", burst=100, tokens=20.0)
    told = why(job(units=50), limits=[LimitFacts(held=used_up)])
    assert told.reasons[0].clears_at == NOW + timedelta(seconds=3)
    assert "it takes 50 units, which are there at 2030-01-31 08:00:03 UTC" in told.summary
    assert (told.likely_start_at, told.is_estimate) == (NOW + timedelta(seconds=3), False)


def test_jobs_that_come_first_under_a_rate_delay_the_likely_start() -> None:
    at = NOW + timedelta(seconds=1)
    used_up = limit("queue:mail", rate="1/s", burst=1, tokens=0.0, next_token_at=at)
    told = why(limits=[LimitFacts(held=used_up)], ahead=9)
    assert (told.likely_start_at, told.is_estimate) == (NOW + timedelta(seconds=10), True)


def test_a_job_larger_than_the_burst_would_wait_for_ever() -> None:
    small = limit("key:openai", rate="100/m", burst=100, tokens=100.0)
    (reason,) = why(job(units=1200), limits=[LimitFacts(held=small)]).reasons
    assert reason.code == "oversized" and reason.clears_at is None
    assert "takes 1,200 units, and limit key:openai never has more than 100" in reason.text
    assert (reason.remedy or "").endswith("rota limits set key:openai --rate 100/m --burst 1200")


def test_a_strict_key_waits_for_the_retry_of_another_job() -> None:
    first = job(id=OTHER, attempt=1, run_at=NOW + timedelta(minutes=1))
    strict = limit(most=1, strict=True)
    (reason,) = why(limits=[LimitFacts(held=strict, retrying=first)]).reasons
    assert (reason.code, reason.blocker) == ("strict", OTHER)
    assert f"job {OTHER} comes first, which waits for its retry, due at 2030-01-31 08:01:00" in reason.text
    itself = why(job(attempt=1), limits=[LimitFacts(held=strict, retrying=job(attempt=1))])
    assert [one.code for one in itself.reasons] == ["next"]


@pytest.mark.parametrize(
    ("spent", "reserved", "price", "text"),
    [
        (5000.0, 0.0, None, "Tenant acme has spent 50.00 of 50.00 today."),
        (4800.0, 200.0, None, "Tenant acme has spent 48.00 and reserved 2.00 of 50.00 today."),
        (4950.0, 0.0, 100.0, "Tenant acme has spent 49.50 of 50.00 today; the price of this job is 1.00."),
        (4950.0, 0.0, None, "Ready: it should start within seconds."),
    ],
)
def test_a_budget_that_is_spent_says_how_much_and_until_when(
    spent: float, reserved: float, price: float | None, text: str
) -> None:
    rule = TenantRule(name="acme", budget=5000.0, period="day")
    use = TenantUse(name="acme", spent=spent, reserved=reserved)
    told = why(job(price=price), budget=BudgetFacts(rule=rule, use=use))
    assert told.summary == text
    if told.reasons[0].code == "budget":
        midnight = datetime(2030, 2, 1, tzinfo=UTC)
        assert (told.reasons[0].clears_at, told.likely_start_at) == (midnight, midnight)


def test_all_that_holds_a_job_up_is_named_in_order() -> None:
    rule = TenantRule(name="acme", budget=100.0, period="hour")
    full = LimitFacts(held=limit("task:send", running=1, most=1), holders=[HOLDER])
    spent = BudgetFacts(rule=rule, use=TenantUse(name="acme", spent=100.0))
    told = explain(WhyFacts(job=job(), now=NOW, limits=[full], budget=spent))
    assert [reason.code for reason in told.reasons] == ["budget", "limit_full", "no_worker"]
    later = explain(WhyFacts(job=job(run_at=NOW + timedelta(hours=1)), now=NOW, limits=[full], budget=spent))
    assert [reason.code for reason in later.reasons] == ["due_later", "no_worker"]


def test_a_place_in_line_is_turned_into_an_estimate_where_jobs_end_at_a_known_speed() -> None:
    told = why(ahead=59, per_s=2.0)
    assert (told.likely_start_at, told.is_estimate) == (NOW + timedelta(seconds=30), True)
    full = LimitFacts(held=limit("queue:mail", running=40, most=40), holders=[HOLDER])
    assert why(limits=[full], ahead=59, per_s=2.0).likely_start_at == NOW + timedelta(seconds=30)
    assert why(ahead=59, per_s=0.0).likely_start_at is None
    assert why(ahead=1000, per_s=2.0).likely_start_at is None  # counting stopped there


def test_tenants_that_share_a_queue_need_not_wait_for_each_other() -> None:
    told = why(ahead=59, per_s=2.0, is_shared=True)
    assert "Tenants share the queue by weight" in told.summary
    assert told.likely_start_at is None
