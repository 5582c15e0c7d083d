"""Why a job is not running. One pure function: facts in, reasons out, in the order they must be cleared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from shlex import quote
from typing import Literal

from ...model import Gate, Job, JobId, State, Value
from .gates import over_job
from .lifecycle import is_quarantined

Code = Literal[
    "ended", "quarantined", "running", "lease_expired", "stopping", "dependency", "paused", "due_later",
    "retry_later", "no_worker", "unknown_task", "unserved_queue", "in_line", "next",
]  # fmt: skip


class WorkerFacts(Value, frozen=True, kw_only=True):
    """The facts about a running worker that decide whether it can run a job."""

    id: str
    tasks: tuple[str, ...] = ()
    queues: tuple[str, ...] | None = None  # None: all
    exclude_queues: tuple[str, ...] = ()
    concurrency: int = 1
    running: int = 0

    def serves(self, queue: str) -> bool:
        return (self.queues is None or queue in self.queues) and queue not in self.exclude_queues


class Reason(Value, frozen=True, kw_only=True):
    code: Code
    text: str
    remedy: str | None = None
    clears_at: datetime | None = None  # when it clears by itself


class Why(Value, frozen=True, kw_only=True):
    """``reasons`` in the order they must be cleared; ``fine`` names what is not in the way."""

    job: JobId
    state: str
    attempt: int  # with the state: which snapshot of the job this is about
    runs: bool
    summary: str
    reasons: tuple[Reason, ...]
    fine: str = ""
    likely_start_at: datetime | None = None


class WhyFacts(Value, frozen=True, kw_only=True):
    job: Job
    now: datetime
    gates: Sequence[Gate] = ()  # those in force
    workers: Sequence[WorkerFacts] = ()  # those that are running
    ahead: int = 0  # due jobs of the same queue that come first
    most_ahead: int = 1000  # counting stopped here


def explain(facts: WhyFacts) -> Why:
    job = facts.job
    if job.is_final:
        reasons = [_ended(facts)]
    elif job.state is State.RUNNING:
        reasons = list(_running(facts))
    else:
        reasons = list(_not_begun(facts))
    return Why(
        job=job.id,
        state=job.state.value,
        attempt=job.attempt,
        runs=job.state is State.RUNNING,
        summary=reasons[0].text,
        reasons=tuple(reasons),
        fine="" if job.is_final or job.state is State.RUNNING else _fine(facts, reasons),
        likely_start_at=_likely_start(facts, reasons),
    )


# --- has finished, or is running --------------------------------------------------------------------------


def _ended(facts: WhyFacts) -> Reason:
    job = facts.job
    when = f" at {_exact(job.finished_at)}" if job.finished_at is not None else ""
    if is_quarantined(job):
        how_often = "its worker" if job.crashes == 1 else f"{job.crashes} workers in a row"
        return Reason(
            code="quarantined",
            text=f"It was quarantined{when}: {how_often} stopped responding while running it.",
            remedy=f"Find out why: rota jobs show {job.id}. A retry releases it, and may end another worker: "
            f"rota jobs retry {job.id}",
        )
    return Reason(
        code="ended",
        text=f"It {'was ' if job.state is State.CANCELLED else ''}{job.state}{when}.",
        remedy=f"Run it again: rota jobs retry {job.id}",
    )


def _running(facts: WhyFacts) -> Iterable[Reason]:
    job = facts.job
    if job.lease_until is not None and job.lease_until <= facts.now:
        yield Reason(
            code="lease_expired",
            text=f"Worker {job.worker} stopped responding; its lease expired at {_exact(job.lease_until)}.",
            remedy="Another worker rescues the job within seconds; if none is running, start one.",
        )
        return
    if job.cancel_requested:
        yield Reason(
            code="stopping",
            text=f"It is running on worker {job.worker} and has been asked to stop.",
            remedy="A task stops at its next await, or when it checks ctx.cancelled.",
        )
        return
    since = f" since {_exact(job.started_at)}" if job.started_at is not None else ""
    until = f", lease until {_exact(job.lease_until)}" if job.lease_until is not None else ""
    text = f"It is running: on worker {job.worker}{since}{until}."
    yield Reason(code="running", text=text + _crashes_before(job))


def _crashes_before(job: Job) -> str:
    if not job.crashes:
        return ""
    lost = "One worker" if job.crashes == 1 else f"{job.crashes} workers in a row"
    return f" {lost} stopped responding while running it before."


# --- has not begun -------------------------------------------------------------------------------


def _not_begun(facts: WhyFacts) -> Iterable[Reason]:
    job = facts.job
    found = [*_dependency(job), *map(_paused, over_job(facts.gates, job.queue, job.task, job.tenant))]
    found += [*_later(facts), *_unserved(facts)]
    if not found:
        found = [_in_line(facts)]
    return found


def _dependency(job: Job) -> Iterable[Reason]:
    if job.state is State.WAITING:
        yield Reason(
            code="dependency",
            text="It is waiting for other jobs to finish first.",
            remedy="Check the jobs it depends on.",
        )


def _paused(gate: Gate) -> Reason:
    what = "Everything" if gate.scope == "all" else f"{gate.scope.capitalize()} {gate.name}"
    until = f" until {_exact(gate.until_at)}" if gate.until_at is not None else ""
    reason = f": {gate.reason}" if gate.reason else ""
    name = quote(gate.name or "")
    command = {
        "all": "rota resume",
        "queue": f"rota queues resume {name}",
        "tenant": f"rota tenants resume {name}",
    }.get(gate.scope, f"rota resume --{gate.scope} {name}")
    return Reason(
        code="paused",
        text=f"{what} is paused{until} by {gate.actor}{reason}.",
        remedy=f"Resume it: {command}",
        clears_at=gate.until_at,
    )


def _later(facts: WhyFacts) -> Iterable[Reason]:
    job = facts.job
    if job.run_at <= facts.now:
        return
    if job.error_json is not None and job.attempt:
        yield Reason(
            code="retry_later",
            text=f"Attempt {job.attempt} of {job.max_attempts} failed; "
            f"the next is due at {_exact(job.run_at)}.",
            remedy=f"Run it now: rota jobs update {job.id} --now",
            clears_at=job.run_at,
        )
    else:
        yield Reason(
            code="due_later",
            text=f"It is not due until {_exact(job.run_at)}.",
            remedy=f"Run it now: rota jobs update {job.id} --now",
            clears_at=job.run_at,
        )


def _unserved(facts: WhyFacts) -> Iterable[Reason]:
    job, workers = facts.job, facts.workers
    knowing = [worker for worker in workers if job.task in worker.tasks]
    if not workers:
        yield Reason(
            code="no_worker",
            text="No worker is running.",
            remedy="Start one: rota worker --app MODULE:APP",
        )
    elif not knowing:
        yield Reason(
            code="unknown_task",
            text=f"No running worker has task {job.task}.",
            remedy="Start a worker whose app declares it, or deploy the code that does.",
        )
    elif not any(worker.serves(job.queue) for worker in knowing):
        yield Reason(
            code="unserved_queue",
            text=f"No running worker that has task {job.task} serves queue {job.queue}.",
            remedy=f"Start one: rota worker --app MODULE:APP -q {quote(job.queue)}",
        )


def _in_line(facts: WhyFacts) -> Reason:
    if facts.ahead:
        count = f"{facts.ahead}" if facts.ahead < facts.most_ahead else f"{facts.most_ahead} or more"
        jobs = "job comes" if count == "1" else "jobs come"
        return Reason(
            code="in_line",
            text=f"It is in line: {count} due {jobs} first in queue {facts.job.queue}.",
            remedy="Raise its priority, or add workers.",
        )
    free = any(worker.running < worker.concurrency for worker in _able(facts))
    if free:
        return Reason(code="next", text="Ready: it should start within seconds.")
    return Reason(
        code="in_line",
        text="It is next in line; every worker that can run it is busy.",
        remedy="Wait for one to be free, or add workers.",
    )


def _able(facts: WhyFacts) -> list[WorkerFacts]:
    job = facts.job
    return [w for w in facts.workers if job.task in w.tasks and w.serves(job.queue)]


def _fine(facts: WhyFacts, reasons: Sequence[Reason]) -> str:
    """What is not in the way, in one line."""
    codes = {reason.code for reason in reasons}
    facts_fine = []
    if not codes & {"due_later", "retry_later"}:
        facts_fine.append(f"due since {_exact(facts.job.run_at)}")
    if "paused" not in codes:
        facts_fine.append("nothing is paused")
    if able := len(_able(facts)):
        facts_fine.append(f"{able} running worker{'s' if able > 1 else ''} can run it")
    return ", ".join(facts_fine)


def _likely_start(facts: WhyFacts, reasons: Sequence[Reason]) -> datetime | None:
    """When the last of the reasons clears by itself; None if one of them does not."""
    if facts.job.is_final or facts.job.state is State.RUNNING:
        return None
    ends = [reason.clears_at for reason in reasons]
    if all(reason.code == "next" for reason in reasons):
        return facts.now
    return max(end for end in ends if end is not None) if ends and None not in ends else None


def _exact(at: datetime | None) -> str:
    return "an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"
