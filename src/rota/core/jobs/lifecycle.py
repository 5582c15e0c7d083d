"""States, legal moves, and the one decision about the end of an attempt.

Pure: ``now`` and ``jitter`` come in, a Settlement comes out. Every way a job can finish or return to the
queue is decided here and nowhere else; the stores only carry it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ...errors import OptionError
from ...model import (
    FINAL,
    Attempt,
    AttemptOutcome,
    AuditEntry,
    Backoff,
    Edit,
    ErrorRecord,
    Job,
    LogLine,
    NewJob,
    Settlement,
    State,
    Value,
)
from .backoff import LONGEST, BackoffFunction, delay
from .options import name_text

MOVES: dict[State, frozenset[State]] = {
    State.WAITING: frozenset({State.QUEUED, State.CANCELLED}),
    State.QUEUED: frozenset({State.RUNNING, State.CANCELLED}),
    State.RUNNING: frozenset({State.QUEUED, State.SUCCEEDED, State.FAILED, State.CANCELLED}),
    State.SUCCEEDED: frozenset({State.QUEUED}),  # an operator may run it again
    State.FAILED: frozenset({State.QUEUED}),
    State.CANCELLED: frozenset({State.QUEUED}),
}


# --- outcomes of an attempt ---------------------------------------------------------------------


class Succeeded(Value, frozen=True, kw_only=True, tag=True):
    output_json: str | None = None


class Failed(Value, frozen=True, kw_only=True, tag=True):
    """The task raised, timed out, crashed or reported it. ``final``: another attempt cannot help."""

    fault: ErrorRecord
    final: bool = False
    output_json: str | None = None  # of a task that returned
    retry_in: float | None = None  # seconds, as the task's own function says; None: by the backoff


class Snoozed(Value, frozen=True, kw_only=True, tag=True):
    """The task asked to be run later; the attempt is refunded."""

    seconds: float
    reason: str | None = None


class Cancelled(Value, frozen=True, kw_only=True, tag=True):
    reason: str


class LeaseExpired(Value, frozen=True, kw_only=True, tag=True):
    """The worker that ran the job stopped responding; the holder that reclaimed it decides.

    How the attempt ended is unknown, so it is refunded, and counted as a crash instead.
    """

    worker: str | None = None
    holder: str | None = None
    beside: int = 0  # the most crashes, before this one, of another job that was lost with the same worker
    most: int = 3  # the crashes in a row that quarantine a job: setting ``quarantine_after``


class Released(Value, frozen=True, kw_only=True, tag=True):
    """Released unfinished, or never started, by a worker that stops. The attempt is refunded.

    It returns to its place in the line: those of its key that came after it must not overtake it.
    """


class NeverBegun(Value, frozen=True, kw_only=True, tag=True):
    """The job ends without an attempt: it has expired, or no worker has its task."""

    state: State  # CANCELLED or FAILED
    fault: ErrorRecord
    action: str  # of the audit entry


Outcome = Succeeded | Failed | Snoozed | Cancelled | LeaseExpired | Released | NeverBegun


class ExecutionReport(Value, frozen=True, kw_only=True):
    """What was observed besides the outcome."""

    worker: str | None = None
    started_at: datetime | None = None
    logs: Sequence[LogLine] = ()
    cost_cents: float | None = None  # None: the attempt reported none
    progress_json: str | None = None
    then: tuple[NewJob, ...] = ()  # stored if the attempt succeeds
    audit: tuple[AuditEntry, ...] = ()  # recorded by the task itself


NOTHING = ExecutionReport()


def decide(
    job: Job,
    outcome: Outcome,
    now: datetime,
    jitter: float,
    backoff: Backoff | BackoffFunction | None = None,
    report: ExecutionReport = NOTHING,
) -> Settlement:
    """Where a running job goes. ``backoff`` is the task's policy; the job's own comes first.

    What a backoff function said is in the outcome, since it was asked where the exception was.
    """
    match outcome:
        case Succeeded(output_json=output):
            return _settlement(
                job, State.SUCCEEDED, "succeeded", now, report, output_json=output, remove=job.auto_remove
            )
        case Snoozed(seconds=seconds):
            later = now + timedelta(seconds=min(max(seconds, 0.0), LONGEST))
            return _settlement(
                job,
                State.QUEUED,
                "snoozed",
                now,
                report,
                run_at=later,
                refund=True,
                error_json=job.error_json,
                crashes=_ended_by_itself(job),
                snoozes=job.snoozes + 1,
            )
        case NeverBegun(state=state, fault=fault, action=decided):
            error = fault_json(msgspec.structs.replace(fault, at=now))
            entries = _entries(job, decided, fault, report.worker or job.worker, now)
            return _settlement(
                job, state, "released", now, report, error_json=error, refund=True, audit=entries
            )
        case Released():
            return _settlement(
                job, State.QUEUED, "released", now, report,
                run_at=job.run_at, refund=True, error_json=job.error_json,
            )  # fmt: skip
        case Cancelled(reason=reason):
            error = fault_json(ErrorRecord(type="Cancelled", message=reason, at=now, attempt=job.attempt))
            return _settlement(job, State.CANCELLED, "cancelled", now, report, error_json=error)
        case LeaseExpired(worker=worker, holder=holder):
            crashes = job.crashes + 1
            state = State.FAILED if _is_suspect(job, outcome) else State.QUEUED
            later = now + timedelta(seconds=jitter * _spread_s(crashes))
            fault = ErrorRecord(
                type="Quarantined" if state is State.FAILED else "LeaseExpired",
                message=f"worker {worker or 'unknown'} stopped responding during attempt {job.attempt}",
                at=now,
                attempt=job.attempt,
            )
            if job.cancel_requested:
                state = State.CANCELLED
            if (asked := reason_to_stop(job)) is not None:
                fault = msgspec.structs.replace(fault, type="Cancelled", message=asked)
            entries = _entries(job, RESCUES.get(state), fault, holder or worker, now)
            return _settlement(
                job,
                state,
                "rescued",
                now,
                report,
                run_at=later if state is State.QUEUED and crashes > 1 else None,
                error_json=fault_json(_with_those_before(fault, job)),
                refund=state is State.QUEUED,
                audit=entries,
                holder=holder,
                crashes=crashes,
            )
        case Failed(fault=fault, final=final, retry_in=retry_in):
            error = fault_json(msgspec.structs.replace(fault, at=fault.at or now, attempt=job.attempt))
            used_up = _retry_or_fail(job) is State.FAILED
            if final or used_up:
                action = "job.exhausted_retries" if used_up else None
                entries = _entries(job, action, fault, report.worker or job.worker, now)
                return _settlement(
                    job, State.FAILED, "failed", now, report,
                    output_json=outcome.output_json, error_json=error, audit=entries,
                )  # fmt: skip
            if retry_in is None:
                policy = job.backoff or (backoff if isinstance(backoff, Backoff) else Backoff.standard())
                retry_in = delay(policy, job.attempt, jitter)
            later = now + timedelta(seconds=retry_in)
            return _settlement(
                job,
                State.QUEUED,
                "failed",
                now,
                report,
                run_at=later,
                error_json=error,
                crashes=_ended_by_itself(job),
            )


def reason_to_stop(job: Job) -> str | None:
    """Why an operator asked a running job to stop: kept in its error until it finishes."""
    fault = _last_fault(job) if job.cancel_requested else None
    return fault.message if fault is not None and fault.type == "Cancelled" else None


def _last_fault(job: Job) -> ErrorRecord | None:
    try:
        return None if job.error_json is None else msgspec.json.decode(job.error_json, type=ErrorRecord)
    except msgspec.DecodeError:  # edited by hand
        return None


# --- crashes -------------------------------------------------------------------------------------

MOST_SHARED_CRASHES = 10  # leases lost in a row with jobs that were lost as often; three times the setting
SPREAD_S = 10.0  # over which jobs that were lost together twice start again; doubled each time
MOST_SPREAD_S = 60.0


def most_crashes(job: Job, most: int) -> int:
    """How many leases a job may lose in a row before it is quarantined: it may be what ends its workers.

    ``max_attempts=1`` asks for a run to be lost rather than repeated; no other number of attempts matters.
    """
    return 1 if job.max_attempts == 1 else most


def is_quarantined(job: Job) -> bool:
    """Whether the job failed because its workers stopped responding."""
    fault = _last_fault(job) if job.crashes and job.state is State.FAILED else None
    return fault is not None and fault.type == "Quarantined"


def _is_suspect(job: Job, lost: LeaseExpired) -> bool:
    """Whether to quarantine a job that has lost another lease.

    All jobs that ran beside the one that ends its workers lose their leases too. So while another has lost as
    many, none is blamed: they start again at different times, until one stands out.
    """
    most, crashes = most_crashes(job, lost.most), job.crashes + 1
    if crashes < most:
        return False
    return most == 1 or job.crashes > lost.beside or crashes >= max(MOST_SHARED_CRASHES, 3 * most)


def _spread_s(crashes: int) -> float:
    """How long the start of a job that was lost is put off at most."""
    return min(SPREAD_S * 2.0 ** min(crashes - 2, 10), MOST_SPREAD_S)


def _ended_by_itself(job: Job) -> int | None:
    """The count of crashes to store after an attempt whose worker lived: it starts again."""
    return 0 if job.crashes else None


def _with_those_before(fault: ErrorRecord, job: Job) -> ErrorRecord:
    """The fault with the crashes before it: which workers, and when. There are few, so it stays short."""
    before = _last_fault(job) if job.crashes else None
    if before is None or before.type != "LeaseExpired" or before.at is None:
        return fault
    message = f"{fault.message}; before that, at {before.at:%Y-%m-%d %H:%M:%S} UTC, {before.message}"
    return msgspec.structs.replace(fault, message=message)


def _retry_or_fail(job: Job) -> State:
    return State.QUEUED if job.attempt < job.max_attempts else State.FAILED


RESCUES = {State.QUEUED: "job.rescued", State.FAILED: "job.quarantined"}
LONGEST_MESSAGE = 500


def _entries(
    job: Job, action: str | None, fault: ErrorRecord, worker: str | None, now: datetime
) -> tuple[AuditEntry, ...]:
    """The audit entry for a worker's decision that an operator may have to explain."""
    if action is None:
        return ()
    first_line = next(iter(fault.message.splitlines()), "")
    return (
        AuditEntry(
            action=action,
            at=now,
            actor=f"worker:{worker or 'unknown'}",
            tenant=job.tenant,
            object=f"job:{job.id}",
            message=f"{fault.type}: {first_line}"[:LONGEST_MESSAGE],
        ),
    )


def _settlement(
    job: Job,
    state: State,
    outcome: AttemptOutcome,
    now: datetime,
    report: ExecutionReport,
    *,
    run_at: datetime | None = None,
    output_json: str | None = None,
    error_json: str | None = None,
    refund: bool = False,
    remove: bool = False,
    audit: tuple[AuditEntry, ...] = (),
    holder: str | None = None,
    crashes: int | None = None,
    snoozes: int | None = None,
) -> Settlement:
    cost = report.cost_cents or 0.0
    if job.price is not None and report.cost_cents is None and _is_charged(outcome, refund, report):
        cost = job.price  # what the task did not measure is charged as it was reserved
    quiet = state is State.SUCCEEDED and job.attempt == 1 and not report.logs
    never_begun = outcome == "released" and report.started_at is None
    record = None
    if not (quiet or never_begun or remove):
        record = Attempt(
            job=job.id,
            attempt=job.attempt,
            lease_token=job.lease_token,
            outcome=outcome,
            worker=report.worker or job.worker,
            started_at=report.started_at or job.started_at,
            finished_at=now,
            error_json=error_json if outcome in ("failed", "rescued", "cancelled") else None,
            logs_json=msgspec.json.encode(report.logs).decode() if report.logs else None,
            cost_cents=cost,
        )
    return Settlement(  # by position, which is quicker: every attempt ends here
        job.id,
        job.lease_token,
        holder or job.worker,
        job.queue,
        job.task,
        job.tenant,
        job.key,
        state,
        max(job.attempt - 1, 0) if refund else job.attempt,
        run_at,
        output_json,
        error_json,
        report.started_at,
        cost,
        report.progress_json,
        remove,
        record,
        report.then if state is State.SUCCEEDED else (),
        report.audit + audit,
        crashes,
        job.schedule,
        snoozes,
    )


def _is_charged(outcome: AttemptOutcome, refund: bool, report: ExecutionReport) -> bool:
    """Whether an attempt costs its price: it began and counts, or its worker took the answer along."""
    return outcome == "rescued" or (report.started_at is not None and not refund)


def fault_json(fault: ErrorRecord) -> str:
    return msgspec.json.encode(fault).decode()


# --- jobs that never begin ------------------------------------------------------------------------


EXPIRED = ErrorRecord(type="Expired", message="expired before it began")


def has_expired(job: Job, now: datetime) -> bool:
    """Whether a job that has not begun may begin no more. One that has begun keeps no ``expires_at``."""
    return job.expires_at is not None and job.expires_at <= now


def expire(now: datetime) -> Edit:
    """The edit that cancels queued jobs which have expired, unless they have begun meanwhile."""
    error = fault_json(msgspec.structs.replace(EXPIRED, at=now))
    touches = frozenset({State.QUEUED, State.WAITING})
    return Edit(verb="cancel", touches=touches, error_json=error, expired_by=now)


def expiry_entries(jobs: Sequence[Job], worker: str, now: datetime) -> list[AuditEntry]:
    """The audit entries for queued jobs that have expired."""
    return [entry for job in jobs for entry in _entries(job, "job.expired", EXPIRED, worker, now)]


# --- operators' edits ----------------------------------------------------------------------------


def cancel(reason: str, now: datetime) -> Edit:
    error = fault_json(ErrorRecord(type="Cancelled", message=reason, at=now))
    return Edit(
        verb="cancel", touches=frozenset({State.WAITING, State.QUEUED, State.RUNNING}), error_json=error
    )


def retry(now: datetime) -> Edit:
    return Edit(verb="retry", touches=FINAL, run_at=now)


def move(*, run_at: datetime | None = None, priority: int | None = None, queue: str | None = None) -> Edit:
    if run_at is None and priority is None and queue is None:
        raise OptionError("nothing to change: give run_at, priority or queue")
    if queue is not None:
        name_text("queue", queue)
    return Edit(verb="move", touches=frozenset({State.QUEUED}), run_at=run_at, priority=priority, queue=queue)


def delete() -> Edit:
    return Edit(verb="delete", touches=FINAL | {State.QUEUED, State.WAITING})


def edited(job: Job, edit: Edit, now: datetime) -> Job:
    """The job as a store leaves it that applied the edit now; a deleted one as it was."""
    match edit.verb:
        case "cancel" if job.state is State.RUNNING:
            return msgspec.structs.replace(
                job, cancel_requested=True, error_json=edit.error_json or job.error_json
            )
        case "cancel":
            return msgspec.structs.replace(
                job, state=State.CANCELLED, error_json=edit.error_json or job.error_json, finished_at=now
            )
        case "retry":
            return msgspec.structs.replace(
                job, state=State.QUEUED, run_at=edit.run_at or now, attempt=0, crashes=0, output_json=None,
                snoozes=0, expires_at=None,
                progress_json=None, started_at=None, finished_at=None, worker=None, cancel_requested=False,
            )  # fmt: skip
        case "move":
            return msgspec.structs.replace(
                job,
                run_at=edit.run_at or job.run_at,
                priority=job.priority if edit.priority is None else edit.priority,
                queue=edit.queue or job.queue,
            )
        case "delete":
            return job
