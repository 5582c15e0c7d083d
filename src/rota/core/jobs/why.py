"""Why a job is not running. One pure function: facts in, reasons out, in the order they must be cleared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from shlex import quote

from ...model import Gate, Job, JobId, State, Value
from .gates import over_job
from .lifecycle import is_quarantined
from .why_limits import BudgetFacts, LimitFacts, every_s, over_budget, over_limits
from .why_reasons import Reason, exact

LONGEST_ESTIMATE_S = 30 * 86_400.0


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
    is_estimate: bool = False  # of ``likely_start_at``: by how fast jobs began recently, if nothing changes


class WhyFacts(Value, frozen=True, kw_only=True):
    job: Job
    now: datetime
    gates: Sequence[Gate] = ()  # those in force
    workers: Sequence[WorkerFacts] = ()  # those that are running
    ahead: int = 0  # due jobs of the same queue that come first
    most_ahead: int = 1000  # counting stopped here
    is_shared: bool = False  # jobs of several tenants wait: they share a queue by weight
    per_s: float | None = None  # jobs of its queue that ended per second recently
    limits: Sequence[LimitFacts] = ()  # those that the job is under
    budget: BudgetFacts | None = None  # of its tenant


def explain(facts: WhyFacts) -> Why:
    job = facts.job
    if job.is_final:
        reasons = [_ended(facts)]
    elif job.state is State.RUNNING:
        reasons = list(_running(facts))
    else:
        reasons = list(_not_begun(facts))
    start_at, is_estimate = _likely_start(facts, reasons)
    return Why(
        job=job.id,
        state=job.state.value,
        attempt=job.attempt,
        runs=job.state is State.RUNNING,
        summary=reasons[0].text,
        reasons=tuple(reasons),
        fine="" if job.is_final or job.state is State.RUNNING else _fine(facts, reasons),
        likely_start_at=start_at,
        is_estimate=is_estimate,
    )


# --- has finished, or is running --------------------------------------------------------------------------


def _ended(facts: WhyFacts) -> Reason:
    job = facts.job
    when = f" at {exact(job.finished_at)}" if job.finished_at is not None else ""
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
            text=f"Worker {job.worker} stopped responding; its lease expired at {exact(job.lease_until)}.",
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
    since = f" since {exact(job.started_at)}" if job.started_at is not None else ""
    until = f", lease until {exact(job.lease_until)}" if job.lease_until is not None else ""
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
    found += [*_later(facts), *_not_admitted(facts), *_unserved(facts)]
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
    until = f" until {exact(gate.until_at)}" if gate.until_at is not None else ""
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
            f"the next is due at {exact(job.run_at)}.",
            remedy=f"Run it now: rota jobs update {job.id} --now",
            clears_at=job.run_at,
        )
    else:
        yield Reason(
            code="due_later",
            text=f"It is not due until {exact(job.run_at)}.",
            remedy=f"Run it now: rota jobs update {job.id} --now",
            clears_at=job.run_at,
        )


def _not_admitted(facts: WhyFacts) -> Iterable[Reason]:
    """What limits and budgets say, if it is due: by then they may be others."""
    job, now = facts.job, facts.now
    if job.state is State.QUEUED and job.run_at <= now:
        yield from over_budget(job, facts.budget, now)
        yield from over_limits(job, facts.limits, now)


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
        text = f"It is in line: {count} due {jobs} first in queue {facts.job.queue}."
        remedy = "Raise its priority, or add workers."
        if facts.is_shared:
            text = (
                f"It is in line: {count} due {jobs} before it in queue {facts.job.queue}. Tenants share the "
                f"queue by weight, so tenant {facts.job.tenant} need not wait for those of others."
            )
            remedy = "Raise its priority or the weight of its tenant, or add workers."
        return Reason(code="in_line", text=text, remedy=remedy)
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
        facts_fine.append(f"due since {exact(facts.job.run_at)}")
    if "paused" not in codes:
        facts_fine.append("nothing is paused")
    if facts.limits and not codes & {"oversized", "strict", "limit_full", "rate"}:
        facts_fine.append("no limit is full")
    if able := len(_able(facts)):
        facts_fine.append(f"{able} running worker{'s' if able > 1 else ''} can run it")
    return ", ".join(facts_fine)


def _likely_start(facts: WhyFacts, reasons: Sequence[Reason]) -> tuple[datetime | None, bool]:
    """When the last of the reasons has cleared, and whether that is an estimate; None if one may never."""
    if facts.job.is_final or facts.job.state is State.RUNNING:
        return None, False
    if all(reason.code == "next" for reason in reasons):
        return facts.now, False
    ends = [_end(facts, reason) for reason in reasons]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends) or not known:
        return None, False
    return max(known), any(end != reason.clears_at for end, reason in zip(ends, reasons, strict=True))


def _end(facts: WhyFacts, reason: Reason) -> datetime | None:
    """When the reason clears: known, or estimated from what comes first and how fast that begins."""
    is_counted = facts.ahead < facts.most_ahead and not facts.is_shared
    queue = f"queue:{facts.job.queue}"
    if reason.clears_at is not None and reason.limit == queue and is_counted:
        each_s = max(every_s(one.held) for one in facts.limits if one.held.name == queue)
        return reason.clears_at + timedelta(seconds=min(facts.ahead * each_s, LONGEST_ESTIMATE_S))
    if reason.clears_at is not None:
        return reason.clears_at
    is_by_queue = reason.code == "in_line" or (reason.code == "limit_full" and reason.limit == queue)
    if not (is_by_queue and is_counted and facts.per_s):
        return None
    return facts.now + timedelta(seconds=min((facts.ahead + 1) / facts.per_s, LONGEST_ESTIMATE_S))
