"""Why a job is not running, as a table: facts in, reasons out, in the order they must be cleared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.core.jobs.why import WhyFacts, WorkerFacts, explain
from rota.model import Gate, Job, State

NOW = datetime(2030, 1, 31, 8, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ABLE = WorkerFacts(id="w1", tasks=("send",), concurrency=4, running=1)
ID = "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60"


def job(**given: Any) -> Job:
    base: dict[str, Any] = {
        "id": ID, "task": "send", "state": State.QUEUED, "queue": "mail", "tenant": "acme",
        "run_at": NOW - timedelta(seconds=5), "created_at": NOW - timedelta(seconds=5),
    }  # fmt: skip
    return Job(**{**base, **given})


def gate(scope: Any, name: str | None = None, **given: Any) -> Gate:
    return Gate(scope=scope, name=name, since_at=NOW, actor="ann", reason="provider down", **given)


def codes(facts: WhyFacts) -> list[str]:
    return [reason.code for reason in explain(facts).reasons]


TABLE: list[tuple[str, WhyFacts, list[str]]] = [
    ("succeeded", WhyFacts(job=job(state=State.SUCCEEDED, finished_at=NOW), now=NOW), ["ended"]),
    ("failed", WhyFacts(job=job(state=State.FAILED, finished_at=NOW), now=NOW), ["ended"]),
    ("cancelled", WhyFacts(job=job(state=State.CANCELLED, finished_at=NOW), now=NOW), ["ended"]),
    ("runs", WhyFacts(job=job(state=State.RUNNING, worker="w1", started_at=NOW, lease_until=LATER), now=NOW),
     ["running"]),
    ("worker is lost", WhyFacts(job=job(state=State.RUNNING, worker="w1", lease_until=NOW), now=NOW),
     ["lease_expired"]),
    ("asked to stop",
     WhyFacts(job=job(state=State.RUNNING, worker="w1", lease_until=LATER, cancel_requested=True), now=NOW),
     ["stopping"]),
    ("waits for others", WhyFacts(job=job(state=State.WAITING), now=NOW, workers=[ABLE]), ["dependency"]),
    ("all paused", WhyFacts(job=job(), now=NOW, gates=[gate("all")], workers=[ABLE]), ["paused"]),
    ("queue paused", WhyFacts(job=job(), now=NOW, gates=[gate("queue", "mail")], workers=[ABLE]), ["paused"]),
    ("task paused", WhyFacts(job=job(), now=NOW, gates=[gate("task", "send")], workers=[ABLE]), ["paused"]),
    ("tenant paused", WhyFacts(job=job(), now=NOW, gates=[gate("tenant", "acme")], workers=[ABLE]),
     ["paused"]),
    ("two gates", WhyFacts(job=job(), now=NOW, gates=[gate("tenant", "acme"), gate("all")], workers=[ABLE]),
     ["paused", "paused"]),
    ("another's gate", WhyFacts(job=job(), now=NOW, gates=[gate("queue", "sms")], workers=[ABLE]), ["next"]),
    ("its schedule's gate", WhyFacts(job=job(), now=NOW, gates=[gate("schedule", "mail", tenant="acme")],
     workers=[ABLE]), ["next"]),
    ("due later", WhyFacts(job=job(run_at=LATER), now=NOW, workers=[ABLE]), ["due_later"]),
    ("retried later", WhyFacts(job=job(run_at=LATER, attempt=1, error_json="{}"), now=NOW, workers=[ABLE]),
     ["retry_later"]),
    ("later and paused", WhyFacts(job=job(run_at=LATER), now=NOW, gates=[gate("all")], workers=[ABLE]),
     ["paused", "due_later"]),
    ("no worker runs", WhyFacts(job=job(), now=NOW), ["no_worker"]),
    ("no worker knows it", WhyFacts(job=job(), now=NOW, workers=[WorkerFacts(id="w2", tasks=("other",))]),
     ["unknown_task"]),
    ("the worker that knows it serves other queues",
     WhyFacts(job=job(), now=NOW, workers=[WorkerFacts(id="w2", tasks=("send",), queues=("sms",))]),
     ["unserved_queue"]),
    ("who knows it leaves the queue out",
     WhyFacts(job=job(), now=NOW, workers=[WorkerFacts(id="w2", tasks=("send",), exclude_queues=("mail",))]),
     ["unserved_queue"]),
    ("others come first", WhyFacts(job=job(), now=NOW, workers=[ABLE], ahead=3), ["in_line"]),
    ("all are busy", WhyFacts(job=job(), now=NOW, workers=[WorkerFacts(id="w", tasks=("send",), concurrency=1,
     running=1)]), ["in_line"]),
    ("nothing is in its way", WhyFacts(job=job(), now=NOW, workers=[ABLE]), ["next"]),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_reasons_come_in_the_order_they_must_be_cleared(facts: WhyFacts, expected: list[str]) -> None:
    assert codes(facts) == expected


@pytest.mark.parametrize("facts", [row[1] for row in TABLE], ids=[row[0] for row in TABLE])
def test_every_explanation_has_a_summary_and_whether_the_job_runs(facts: WhyFacts) -> None:
    told = explain(facts)
    assert told.summary == told.reasons[0].text
    assert told.summary.endswith(".")
    assert told.runs == (facts.job.state is State.RUNNING)


def test_a_pause_is_explained_with_actor_reason_and_end() -> None:
    facts = WhyFacts(job=job(), now=NOW, gates=[gate("queue", "mail", until_at=LATER)], workers=[ABLE])
    told = explain(facts)
    assert told.summary == "Queue mail is paused until 2030-01-31 09:00:00 UTC by ann: provider down."
    assert told.reasons[0].remedy == "Resume it: rota queues resume mail"
    assert told.likely_start_at == LATER


def test_a_start_is_not_promised_while_a_reason_does_not_clear_by_itself() -> None:
    facts = WhyFacts(job=job(run_at=LATER), now=NOW, gates=[gate("all")], workers=[ABLE])
    assert explain(facts).likely_start_at is None


def test_a_job_that_is_due_later_starts_then() -> None:
    assert explain(WhyFacts(job=job(run_at=LATER), now=NOW, workers=[ABLE])).likely_start_at == LATER


def test_a_long_line_is_counted_as_at_least() -> None:
    told = explain(WhyFacts(job=job(), now=NOW, workers=[ABLE], ahead=1000, most_ahead=1000))
    assert "1000 or more due jobs come first in queue mail" in told.summary


def test_a_running_job_names_its_worker_and_its_lease() -> None:
    facts = WhyFacts(job=job(state=State.RUNNING, worker="w1", started_at=NOW, lease_until=LATER), now=NOW)
    summary = explain(facts).summary
    assert summary == (
        "It is running: on worker w1 since 2030-01-31 08:00:00 UTC, lease until 2030-01-31 09:00:00 UTC."
    )


def test_what_is_not_in_the_way_is_one_line() -> None:
    told = explain(WhyFacts(job=job(), now=NOW, gates=[gate("all")], workers=[ABLE]))
    assert told.fine == "due since 2030-01-31 07:59:55 UTC, 1 running worker can run it"


def test_a_quarantined_job_says_so_and_what_a_retry_may_do() -> None:
    fault = '{"type": "Quarantined", "message": "worker w3 stopped responding during attempt 1"}'
    facts = WhyFacts(job=job(state=State.FAILED, crashes=3, error_json=fault, finished_at=NOW), now=NOW)
    (reason,) = explain(facts).reasons
    assert reason.code == "quarantined"
    assert "3 workers in a row stopped responding while running it" in reason.text
    assert "may end another worker" in (reason.remedy or "")


def test_a_running_job_tells_of_the_workers_it_lost() -> None:
    facts = WhyFacts(job=job(state=State.RUNNING, crashes=1, worker="w2", lease_until=LATER), now=NOW)
    (reason,) = explain(facts).reasons
    assert reason.text.endswith("One worker stopped responding while running it before.")
