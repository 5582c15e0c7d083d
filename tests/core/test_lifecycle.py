"""The one decision about the end of an attempt: every outcome, at every count of attempts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.ids import uuid7
from rota.core.jobs import lifecycle
from rota.core.jobs.backoff import LONGEST
from rota.core.jobs.lifecycle import (
    MOVES,
    Cancelled,
    ExecutionReport,
    Failed,
    LeaseExpired,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
    decide,
)
from rota.errors import OptionError
from rota.model import FINAL, AuditEntry, Backoff, ErrorRecord, Job, LogLine, NewJob, Settlement, State

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FAULT = ErrorRecord(type="ValueError", message="no luck")
OUTCOMES: list[Outcome] = [
    Succeeded(output_json="1"),
    Failed(fault=FAULT),
    Failed(fault=FAULT, final=True),
    Snoozed(seconds=60),
    Cancelled(reason="enough"),
    LeaseExpired(worker="w1"),
    Released(),
]


def a_job(**fields: Any) -> Job:
    told: dict[str, Any] = {
        "id": uuid7(1, 1), "task": "work", "state": State.RUNNING, "attempt": 1, "max_attempts": 3,
        "lease_token": 4, "run_at": NOW, "created_at": NOW, "started_at": NOW, "worker": "w1",
    }  # fmt: skip
    return Job(**(told | fields))


def end(outcome: Outcome, **fields: Any) -> Settlement:
    return decide(a_job(**fields), outcome, NOW, 0.0)


@pytest.mark.parametrize(
    ("outcome", "state", "attempt", "wait"),
    [
        (Succeeded(), State.SUCCEEDED, 1, None),
        (Failed(fault=FAULT), State.QUEUED, 1, 5),
        (Failed(fault=FAULT, final=True), State.FAILED, 1, None),
        (Snoozed(seconds=60), State.QUEUED, 0, 60),
        (Snoozed(seconds=-5), State.QUEUED, 0, 0),
        (Snoozed(seconds=1e300), State.QUEUED, 0, LONGEST),
        (Cancelled(reason="enough"), State.CANCELLED, 1, None),
        (LeaseExpired(worker="w1"), State.QUEUED, 0, None),
        (Released(), State.QUEUED, 0, 0),  # in its place again
    ],
)
def test_where_a_first_attempt_goes(outcome: Outcome, state: State, attempt: int, wait: float | None) -> None:
    change = end(outcome)
    run_at = None if wait is None else NOW + timedelta(seconds=wait)
    assert (change.state, change.attempt, change.run_at) == (state, attempt, run_at)


@pytest.mark.parametrize(
    ("outcome", "state", "attempt"),
    [
        (Succeeded(), State.SUCCEEDED, 3),
        (Failed(fault=FAULT), State.FAILED, 3),
        (Snoozed(seconds=60), State.QUEUED, 2),
        (Cancelled(reason="enough"), State.CANCELLED, 3),
        (LeaseExpired(worker="w1"), State.QUEUED, 2),
        (Released(), State.QUEUED, 2),
    ],
)
def test_where_a_last_attempt_goes(outcome: Outcome, state: State, attempt: int) -> None:
    change = end(outcome, attempt=3)
    assert (change.state, change.attempt) == (state, attempt)


@pytest.mark.parametrize(("attempt", "wait"), [(1, 5), (2, 10), (3, 20), (9, 300)])
def test_each_failure_waits_longer(attempt: int, wait: float) -> None:
    change = end(Failed(fault=FAULT), attempt=attempt, max_attempts=10)
    assert change.run_at == NOW + timedelta(seconds=wait)


def test_the_backoff_of_the_job_comes_before_that_of_the_task() -> None:
    own, tasks = Backoff(base=7, jitter=0), Backoff(base=9, jitter=0)
    failed = Failed(fault=FAULT)
    assert decide(a_job(backoff=own), failed, NOW, 0.0, tasks).run_at == NOW + timedelta(seconds=7)
    assert decide(a_job(), failed, NOW, 0.0, tasks).run_at == NOW + timedelta(seconds=9)


def test_jitter_is_taken_from_the_caller() -> None:
    assert decide(a_job(), Failed(fault=FAULT), NOW, 0.5).run_at == NOW + timedelta(seconds=5.5)


def test_a_lost_job_that_was_asked_to_stop_ends_cancelled() -> None:
    assert end(LeaseExpired(worker="w1"), cancel_requested=True).state is State.CANCELLED


def test_the_reason_an_operator_gave_for_stopping_a_running_job_survives_its_worker() -> None:
    asked = lifecycle.cancel("wrong customer", NOW).error_json
    change = end(LeaseExpired(worker="w1"), cancel_requested=True, error_json=asked)
    assert change.error_json is not None
    assert '"wrong customer"' in change.error_json
    assert lifecycle.reason_to_stop(a_job(cancel_requested=True, error_json=asked)) == "wrong customer"


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (True, None),
        (True, lifecycle.fault_json(FAULT)),
        (True, "[not json"),
        (False, lifecycle.cancel("no", NOW).error_json),
    ],
)
def test_an_older_error_is_no_reason_to_stop(asked: bool, error: str | None) -> None:
    assert lifecycle.reason_to_stop(a_job(cancel_requested=asked, error_json=error)) is None


# --- crashes -------------------------------------------------------------------------------------


def after(job: Job, change: Settlement) -> Job:
    """The job when it is claimed again."""
    return msgspec.structs.replace(
        job,
        attempt=change.attempt + 1,
        lease_token=job.lease_token + 1,
        error_json=change.error_json,
        crashes=job.crashes if change.crashes is None else change.crashes,
    )


def test_the_third_crash_in_a_row_quarantines_a_job_and_tells_of_all_three() -> None:
    job, change = a_job(attempt=2), None
    for number, worker in enumerate(("a", "b", "c")):
        assert change is None or change.state is State.QUEUED
        change = decide(job, LeaseExpired(worker=worker, holder="r"), NOW + timedelta(hours=number), 0.0)
        job = after(job, change)
    assert change is not None
    assert (change.state, change.crashes, change.attempt) == (State.FAILED, 3, 2)
    fault = job.error
    assert fault["type"] == "Quarantined"
    assert fault["message"] == (
        "worker c stopped responding during attempt 2; "
        "before that, at 2030-01-01 01:00:00 UTC, worker b stopped responding during attempt 2; "
        "before that, at 2030-01-01 00:00:00 UTC, worker a stopped responding during attempt 2"
    )
    (line,) = change.audit
    assert (line.action, line.actor) == ("job.quarantined", "worker:r")


@pytest.mark.parametrize(
    ("crashes", "beside", "max_attempts", "state"),
    [
        (2, 0, 5, State.FAILED),
        (2, 1, 5, State.FAILED),
        (2, 2, 5, State.QUEUED),  # another one was lost as often
        (2, 4, 5, State.QUEUED),
        (1, 0, 5, State.QUEUED),
        (8, 8, 5, State.QUEUED),
        (9, 9, 5, State.FAILED),  # enough
        (0, 3, 1, State.FAILED),  # rather lost than repeated
    ],
)
def test_a_job_is_quarantined_when_it_stands_out(
    crashes: int, beside: int, max_attempts: int, state: State
) -> None:
    change = end(LeaseExpired(worker="w1", beside=beside), crashes=crashes, max_attempts=max_attempts)
    assert (change.state, change.crashes) == (state, crashes + 1)


@pytest.mark.parametrize(
    ("crashes", "longest_s"), [(0, 0.0), (1, 10.0), (2, 20.0), (3, 40.0), (4, 60.0), (8, 60.0)]
)
def test_jobs_that_are_lost_again_and_again_start_further_apart(crashes: int, longest_s: float) -> None:
    job = a_job(crashes=crashes, max_attempts=5)
    change = decide(job, LeaseExpired(worker="w1", beside=9), NOW, 1.0)
    assert change.run_at == (NOW + timedelta(seconds=longest_s) if crashes else None)


def test_how_many_crashes_quarantine_a_job_can_be_set() -> None:
    once = LeaseExpired(worker="w1", most=1)
    assert end(once).state is State.FAILED
    assert [end(LeaseExpired(worker="w1", most=5), crashes=n).state for n in (3, 4)] == ["queued", "failed"]
    shared = LeaseExpired(worker="w1", most=5, beside=14)
    assert [end(shared, crashes=n).state for n in (13, 14)] == ["queued", "failed"]


def test_a_job_that_must_rather_be_lost_than_repeated_is_quarantined_at_its_first_crash() -> None:
    change = end(LeaseExpired(worker="w1"), max_attempts=1)
    assert (change.state, change.attempt, change.crashes) == (State.FAILED, 1, 1)
    assert '"Quarantined"' in (change.error_json or "")


@pytest.mark.parametrize("outcome", [Failed(fault=FAULT), Snoozed(seconds=1)])
def test_an_attempt_that_ends_by_itself_begins_the_count_of_crashes_anew(outcome: Outcome) -> None:
    assert end(outcome, crashes=2).crashes == 0
    assert end(outcome).crashes is None


@pytest.mark.parametrize("outcome", [Released(), Succeeded(), Cancelled(reason="enough")])
def test_other_ends_keep_the_count_of_crashes(outcome: Outcome) -> None:
    assert end(outcome, crashes=2).crashes is None


def test_an_operators_retry_releases_a_quarantined_job() -> None:
    job = a_job(state=State.FAILED, crashes=3, attempt=1)
    released = lifecycle.edited(job, lifecycle.retry(NOW), NOW)
    assert (released.state, released.crashes, released.attempt) == (State.QUEUED, 0, 0)


@examples()
@given(st.lists(st.sampled_from(OUTCOMES), max_size=30), st.integers(1, 5))
def test_crashes_and_failures_are_counted_apart(ends: list[Outcome], most: int) -> None:
    """Whatever happens: a job fails by as many failures as it may have, or by crashes in a row alone."""
    job, failures, crashes = a_job(max_attempts=most), 0, 0
    for outcome in ends:
        change = decide(job, outcome, NOW, 0.0)
        match outcome:
            case Failed():
                failures, crashes = failures + 1, 0
            case Snoozed():
                crashes = 0
            case LeaseExpired():
                crashes += 1
        limit = lifecycle.most_crashes(job, 3)
        if isinstance(outcome, LeaseExpired):
            assert (change.state is State.FAILED) is (crashes == limit)
        elif isinstance(outcome, Failed):
            assert (change.state is State.FAILED) is (outcome.final or failures == most)
        if change.state is not State.QUEUED:
            break
        job = after(job, change)
        assert (job.attempt, job.crashes) == (failures + 1, crashes)


# --- audit entries ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "attempt", "action"),
    [
        (Succeeded(), 3, None),
        (Failed(fault=FAULT), 1, None),
        (Failed(fault=FAULT), 3, "job.exhausted_retries"),
        (Failed(fault=FAULT, final=True), 1, None),
        (Snoozed(seconds=60), 3, None),
        (Cancelled(reason="enough"), 3, None),
        (LeaseExpired(worker="w1", holder="w2"), 1, "job.rescued"),
        (LeaseExpired(worker="w1", holder="w2"), 3, "job.rescued"),
        (Released(), 3, None),
    ],
)
def test_which_outcomes_are_recorded_in_the_audit_log(
    outcome: Outcome, attempt: int, action: str | None
) -> None:
    assert [line.action for line in end(outcome, attempt=attempt).audit] == ([action] if action else [])


def test_a_line_names_the_job_its_tenant_the_worker_and_the_first_line_of_the_error() -> None:
    wordy = Failed(fault=ErrorRecord(type="ValueError", message="no luck\nat all"))
    (line,) = end(wordy, attempt=3, tenant="acme").audit
    assert (line.object, line.tenant, line.actor) == (f"job:{a_job().id}", "acme", "worker:w1")
    assert (line.message, line.at) == ("ValueError: no luck", NOW)
    (line,) = end(LeaseExpired(worker="w1", holder="w2")).audit
    assert line.actor == "worker:w2"


def test_entries_of_the_task_come_before_those_of_the_system() -> None:
    said = AuditEntry(action="email.sent", at=NOW)
    report = ExecutionReport(audit=(said,))
    change = decide(a_job(attempt=3), Failed(fault=FAULT), NOW, 0.0, report=report)
    assert [line.action for line in change.audit] == ["email.sent", "job.exhausted_retries"]
    assert decide(a_job(), Succeeded(), NOW, 0.0, report=report).audit == (said,)
    assert decide(a_job(), Succeeded(), NOW, 0.0).audit == ()


def test_a_rescue_names_the_worker_that_went_silent() -> None:
    change = end(LeaseExpired(worker="w1"))
    assert change.record is not None
    assert change.record.outcome == "rescued"
    assert "w1" in change.record.error["message"]


def test_a_silent_first_success_writes_no_record() -> None:
    assert end(Succeeded()).record is None
    assert end(Succeeded(), attempt=2).record is not None
    logs = [LogLine(at=NOW, level="info", message="hello")]
    kept = decide(a_job(), Succeeded(), NOW, 0.0, report=ExecutionReport(logs=logs)).record
    assert kept is not None
    assert kept.logs == logs


def test_a_released_job_has_a_record_only_if_its_code_began() -> None:
    assert end(Released()).record is None
    began = decide(a_job(), Released(), NOW, 0.0, report=ExecutionReport(started_at=NOW)).record
    assert began is not None
    assert began.outcome == "released"


def test_only_a_success_removes_the_job() -> None:
    removed = [outcome for outcome in OUTCOMES if end(outcome, auto_remove=True).remove]
    assert removed == [OUTCOMES[0]]
    assert end(Succeeded()).remove is False


def test_follow_up_jobs_are_stored_only_when_the_attempt_succeeds() -> None:
    report = ExecutionReport(then=(NewJob(id=uuid7(1, 2), task="next"),))
    for outcome in OUTCOMES:
        change = decide(a_job(), outcome, NOW, 0.0, report=report)
        assert bool(change.then) is (change.state is State.SUCCEEDED)


def test_an_earlier_error_stays_with_a_job_that_only_waits() -> None:
    for outcome in (Snoozed(seconds=1), Released()):
        assert end(outcome, error_json='{"type":"E"}').error_json == '{"type":"E"}'
    assert end(Succeeded(), error_json='{"type":"E"}').error_json is None


def test_what_the_runner_saw_is_kept() -> None:
    report = ExecutionReport(started_at=NOW, cost_cents=2.5, progress_json="{}")
    change = decide(a_job(), Failed(fault=FAULT), NOW, 0.0, report=report)
    assert (change.started_at, change.cost_cents, change.progress_json) == (NOW, 2.5, "{}")


outcomes = st.sampled_from(OUTCOMES)


@examples()
@given(outcomes, st.integers(0, 200), st.integers(1, 100), st.booleans(), st.floats(0, 1, exclude_max=True))
def test_every_decision_is_a_legal_move_that_keeps_the_token(
    outcome: Outcome, attempt: int, most: int, asked: bool, jitter: float
) -> None:
    job = a_job(attempt=attempt, max_attempts=most, cancel_requested=asked)
    change = decide(job, outcome, NOW, jitter)
    assert change.state in MOVES[State.RUNNING]
    assert (change.id, change.lease_token) == (job.id, job.lease_token)
    assert 0 <= change.attempt <= job.attempt
    assert change.run_at is None or change.state is State.QUEUED
    assert change.run_at is None or change.run_at >= NOW
    if isinstance(outcome, Failed) and change.state is State.QUEUED:
        assert attempt < most


@pytest.mark.parametrize(
    ("edit", "states"),
    [
        (lifecycle.cancel("no", NOW), {State.WAITING, State.QUEUED, State.RUNNING}),
        (lifecycle.retry(NOW), {State.SUCCEEDED, State.FAILED, State.CANCELLED}),
        (lifecycle.move(priority=1), {State.QUEUED}),
        (lifecycle.delete(), set(State) - {State.RUNNING}),
    ],
)
def test_an_edit_names_the_states_it_may_touch(edit: Any, states: set[State]) -> None:
    assert edit.touches == states


def test_a_move_that_changes_nothing_is_refused() -> None:
    with pytest.raises(OptionError, match="run_at, priority or queue"):
        lifecycle.move()


def test_nothing_moves_out_of_a_final_state_but_by_retry() -> None:
    for before in FINAL:
        assert [after for after in State if after in MOVES[before]] == [State.QUEUED]


# --- prices ---------------------------------------------------------------------------------------


BEGUN = ExecutionReport(started_at=NOW)


@pytest.mark.parametrize(
    ("outcome", "cost"),
    [
        (Succeeded(), 7.0),
        (Failed(fault=FAULT), 7.0),
        (Failed(fault=FAULT, final=True), 7.0),
        (Cancelled(reason="enough"), 7.0),
        (Snoozed(seconds=60), 0.0),  # the attempt is refunded
        (Released(), 0.0),
    ],
)
def test_an_attempt_that_counts_and_reports_no_cost_costs_its_price(outcome: Outcome, cost: float) -> None:
    settlement = decide(a_job(price=7.0), outcome, NOW, 0.0, report=BEGUN)
    assert settlement.cost_cents == cost
    assert decide(a_job(), outcome, NOW, 0.0, report=BEGUN).cost_cents == 0.0
    measured = ExecutionReport(started_at=NOW, cost_cents=2.0)
    assert decide(a_job(price=7.0), outcome, NOW, 0.0, report=measured).cost_cents == 2.0
    free = ExecutionReport(started_at=NOW, cost_cents=0.0)
    assert decide(a_job(price=7.0), outcome, NOW, 0.0, report=free).cost_cents == 0.0


def test_an_attempt_that_was_lost_with_its_worker_costs_its_price_and_one_never_begun_nothing() -> None:
    assert end(LeaseExpired(worker="w1"), price=7.0).cost_cents == 7.0
    assert end(Cancelled(reason="before it began"), price=7.0).cost_cents == 0.0
    assert end(Released(), price=7.0).cost_cents == 0.0


def test_the_price_is_in_the_record_of_the_attempt() -> None:
    settlement = decide(a_job(price=7.0), Failed(fault=FAULT), NOW, 0.0, report=BEGUN)
    assert settlement.record is not None and settlement.record.cost_cents == 7.0
