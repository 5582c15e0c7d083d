"""Jobs at the desk: looking, enqueueing, retrying, cancelling, moving, deleting; one by one or many."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime

import msgspec

from ..core.ids import uuid7
from ..core.jobs import lifecycle
from ..core.jobs.gates import active
from ..core.jobs.options import options
from ..core.jobs.why import Why, WhyFacts, explain
from ..core.payload.masking import is_secret
from ..errors import Forbidden, IllegalMove, NotFound, OptionError
from ..model import Edit, Job, JobCount, JobFilter, JobId, JobsAhead, Page, PageRequest, State, Value
from ..runtime.audit import AuditDraft
from ..store.calls import find_document
from . import job_edits
from .failures import failures
from .operations import ActionGroup, requires
from .requests import (
    BulkRequest,
    CancelRequest,
    CountRequest,
    EnqueueRequest,
    FailuresRequest,
    JobSelector,
    JobsRequest,
    UpdateJobRequest,
)
from .views import AttemptView, BulkResult, Count, FailureGroups, JobView, attempt_view, job_view
from .workers import live_workers

MOST_AHEAD = 1000
MOST_COUNTED = 10_000
SAMPLE = 5
IDEMPOTENCY = "idempotency"


class IdempotencyRecord(Value, frozen=True, kw_only=True):
    """What an idempotency key stands for."""

    key: str
    job: JobId
    request: str  # a hash of it
    made: bool = False


class JobActions(ActionGroup):
    thing = "job"

    # --- looking ---------------------------------------------------------------------------------

    @requires("read")
    async def list(self, ask: JobsRequest) -> Page[JobView]:
        """A page of jobs by id, the newest first unless told otherwise."""
        store = await self.operations.store()
        page = await store.jobs(
            self.filter(ask),
            PageRequest(limit=ask.limit, cursor=ask.cursor, newest_first=ask.order == "newest"),
        )
        return Page(items=[job_view(job, self.operations.visibility) for job in page.items], next=page.next)

    @requires("read")
    async def count(self, ask: CountRequest) -> Count:
        """How many jobs match, up to a bound."""
        found = await (await self.operations.store()).survey(JobCount(self.filter(ask), ask.most))
        return Count(count=found, exact=found < ask.most)

    @requires("read")
    async def failures(self, ask: FailuresRequest) -> FailureGroups:
        """The newest failed jobs, grouped by what went wrong."""
        match = JobSelector(
            state=(State.FAILED,), task=ask.task, queue=ask.queue, tenant=ask.tenant, since=ask.since,
            until=ask.until,
        )  # fmt: skip
        return await failures(
            await self.operations.store(), self.filter(match), ask.limit, self.operations.visibility
        )

    @requires("read")
    async def show(self, id: str) -> JobView:
        """One job."""
        return job_view(await self.get(id), self.operations.visibility)

    @requires("read")
    async def attempts(self, id: str) -> Page[AttemptView]:
        """All attempts of a job, oldest first."""
        job = await self.get(id)
        found = await job_edits.attempts(await self.operations.store(), job)
        return Page(items=[attempt_view(one, self.operations.visibility) for one in found])

    @requires("read")
    async def why(self, id: str) -> Why:
        """Why it is not running: the reasons in the order they must be cleared."""
        job = await self.get(id)
        store, now = await self.operations.store(), self.app.clock.now()
        ahead = await store.survey(JobsAhead(job, MOST_AHEAD)) if job.state is State.QUEUED else 0
        return explain(
            WhyFacts(
                job=job,
                now=now,
                gates=active(await self.operations.gates.stored(), now),
                workers=await live_workers(store, self.app.clock, self.app.settings.lease_duration_s),
                ahead=ahead,
                most_ahead=MOST_AHEAD,
            )
        )

    async def get(self, id: str) -> Job:
        """The job, if this actor may know of it: another tenant's is as if it were not there."""
        job = await job_edits.get(await self.operations.store(), id)
        if not self.operations.sees(job.tenant):
            raise NotFound(f"there is no job {job.id}: it was never stored, or it has been removed since")
        return job

    def filter(self, match: JobSelector) -> JobFilter:
        return JobFilter(
            states=match.state or None,
            task=match.task,
            queue=match.queue,
            tenant=self.operations.tenant(match.tenant),
            tag=match.tag,
            key=match.key,
            schedule=match.schedule,
            parent=job_edits.check_id(match.parent) if match.parent is not None else None,
            worker=match.worker,
            error=match.error,
            payload=self._payload(match.payload),
            not_tasks=match.not_task,
            not_queues=match.not_queue,
            after_id=_bound(match.since, "since"),
            before_id=_bound(match.until, "until"),
        )

    def _payload(self, said: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], str], ...]:
        """What is searched for in payloads; never by who may not see it, nor in a secret field."""
        if said and not self.operations.actor.payloads:
            raise Forbidden("searching in payloads needs the permission to see them")
        found = []
        for one in said:
            path, equals, text = one.partition("=")
            keys = tuple(path.split("."))
            if not equals or not all(keys):
                raise OptionError(f"payload={one!r}: write it as order.id=42")
            if any(is_secret(key, self.app.settings.secret_fields) for key in keys):
                raise Forbidden(f"payload={one!r}: the field is secret, and cannot be searched")
            found.append((keys, text))
        return tuple(found)

    # --- one -------------------------------------------------------------------------------------

    @requires("operate")
    async def enqueue(self, ask: EnqueueRequest) -> JobView:
        """Store a job for a task by name."""
        tenant = self.operations.tenant(ask.tenant) or "default"
        async with self.operations.audited("job.enqueue", None, tenant) as note:
            said = {
                name: value
                for name in ("queue", "priority", "run_at", "delay", "key", "on_conflict", "max_attempts",
                             "timeout", "auto_remove", "parent")
                if (value := getattr(ask, name)) is not None
            }  # fmt: skip
            chosen = options({**said, "tenant": self.operations.tenant(ask.tenant), "tags": ask.tags or None})
            new = await self.app.producer.prepared(ask.task, ask.payload, chosen)  # before a key is used up
            promise = await self._promise(ask, tenant)
            handle = await self.app.producer.enqueue_as(new, None if promise is None else promise.job)
            await self._kept(promise)
            note.object, note.tenant = f"job:{handle.id}", handle.tenant
            note.after = {"task": handle.task, "queue": handle.queue, "state": handle.state}
            return job_view(handle, self.operations.visibility)

    async def _promise(self, ask: EnqueueRequest, tenant: str) -> IdempotencyRecord | None:
        """The id that every request with this idempotency key makes its job under."""
        if ask.idempotency_key is None:
            return None
        store, now = await self.operations.store(), self.app.clock.now()
        told = msgspec.json.encode(msgspec.structs.replace(ask, idempotency_key=None), order="deterministic")
        fresh = IdempotencyRecord(
            key=hashlib.sha256(f"{tenant}\0{ask.idempotency_key}".encode()).hexdigest(),
            job=self.app.ids.new(now),
            request=hashlib.sha256(told).hexdigest(),
        )
        await store.put_document(IDEMPOTENCY, fresh.key, msgspec.json.encode(fresh).decode(), 0, now)
        document = await find_document(store, IDEMPOTENCY, fresh.key)
        kept = fresh if document is None else msgspec.json.decode(document.body, type=IdempotencyRecord)
        if kept.request != fresh.request:
            raise IllegalMove(
                f"the idempotency key {ask.idempotency_key!r} was used for another request: choose a new one"
            )
        if kept.made and not (await store.jobs(JobFilter(ids=(kept.job,)), PageRequest(limit=1))).items:
            raise IllegalMove(
                f"the job of the idempotency key {ask.idempotency_key!r} was made and has been removed since"
            )
        return kept

    async def _kept(self, promise: IdempotencyRecord | None) -> None:
        """The job is stored: should it be removed, the key must not make it again."""
        if promise is not None and not promise.made:
            kept = msgspec.json.encode(msgspec.structs.replace(promise, made=True)).decode()
            await (await self.operations.store()).put_document(
                IDEMPOTENCY, promise.key, kept, None, self.app.clock.now()
            )

    @requires("operate")
    async def retry(self, id: str) -> JobView:
        """Run a job that has ended once more."""
        return job_view(await self.retried(id), self.operations.visibility)

    @requires("operate")
    async def cancel(self, id: str, ask: CancelRequest) -> JobView:
        """Cancel a queued job at once; ask a running one to stop."""
        return job_view(await self.cancelled(id, ask.reason), self.operations.visibility)

    @requires("operate")
    async def move(self, id: str, ask: UpdateJobRequest) -> JobView:
        """Change when a queued job is due, how urgent it is, or where it waits."""
        return job_view(await self._edit(id, self._moved(ask), "move"), self.operations.visibility)

    @requires("operate")
    async def delete(self, id: str) -> None:
        """Remove a job that does not run, with its history."""
        async with self._audited("delete", id) as note:
            job = await self.get(id)
            note.tenant, note.before = job.tenant, _told(job)
            await job_edits.delete(await self.operations.store(), self.app.clock, job.id)

    async def retried(self, id: str) -> Job:
        return await self._edit(id, lifecycle.retry(self.app.clock.now()), "retry")

    async def cancelled(self, id: str, reason: str) -> Job:
        return await self._edit(id, lifecycle.cancel(reason, self.app.clock.now()), "cancel", reason)

    def _audited(self, verb: str, id: str) -> AbstractAsyncContextManager[AuditDraft]:
        return self.operations.audited(
            f"job.{verb}", f"job:{job_edits.check_id(id)}", self.operations.actor.tenant
        )

    async def _edit(self, id: str, edit: Edit, verb: str, message: str | None = None) -> Job:
        async with self._audited(verb, id) as note:
            job = await self.get(id)
            note.tenant, note.before, note.message = job.tenant, _told(job), message
            after = await job_edits.edit_one(
                await self.operations.store(), self.app.clock, job.id, edit, verb
            )
            note.after = _told(after)
            return after

    def _moved(self, ask: UpdateJobRequest) -> Edit:
        if ask.now and ask.run_at is not None:
            raise OptionError("give now or run_at, not both")
        run_at = self.app.clock.now() if ask.now else ask.run_at
        if run_at is not None and run_at.tzinfo is None:
            raise OptionError("run_at has no time zone: write it as 2030-01-31T08:00:00Z")
        return lifecycle.move(run_at=run_at, priority=ask.priority, queue=ask.queue)

    # --- many ------------------------------------------------------------------------------------

    @requires("operate", "jobs.bulk")
    async def bulk(self, ask: BulkRequest) -> BulkResult:
        """One step of an action on many jobs; see ``BulkAsk``."""
        if (ask.ids is None) == (ask.filter is None):
            raise OptionError("give ids or filter: one of the two")
        edit = self._bulk_edit(ask)
        where = self._bulk_filter(ask, edit)
        store = await self.operations.store()
        matched = await store.survey(JobCount(where, MOST_COUNTED))
        page = await store.jobs(where, PageRequest(limit=ask.limit, newest_first=False))
        if ask.dry_run:
            sample = tuple(job_view(job, self.operations.visibility) for job in page.items[:SAMPLE])
            return _bulk(ask, matched, sample=sample)
        async with self.operations.audited(f"jobs.{ask.action}", "jobs", where.tenant) as note:
            found = tuple(job.id for job in page.items)
            touched: Sequence[JobId] = ()
            if found:
                touched = await store.edit(found, edit, self.app.clock.now())
            refused = len(found) - len(touched)
            following = f"{found[-1]}/{where.before_id}" if len(found) == ask.limit else None
            note.before = {"filter": ask.filter, "ids": ask.ids, "move": ask.move}
            note.after = {"done": len(touched), "refused": refused, "jobs": touched}
            note.message = ask.reason if ask.action == "cancel" else None
            return _bulk(ask, matched, done=len(touched), refused=refused, next=following)

    def _bulk_edit(self, ask: BulkRequest) -> Edit:
        now = self.app.clock.now()
        match ask.action:
            case "retry":
                return lifecycle.retry(now)
            case "cancel":
                return lifecycle.cancel(ask.reason, now)
            case "delete":
                return lifecycle.delete()
            case "move":
                return self._moved(ask.move or UpdateJobRequest())

    def _bulk_filter(self, ask: BulkRequest, edit: Edit) -> JobFilter:
        """What is left to do: in the states that the action may touch, after the cursor, made until now."""
        where = self.filter(ask.filter or JobSelector())
        states = tuple(edit.touches if where.states is None else edit.touches & set(where.states))
        if not states:
            raise OptionError(
                f"none of these states can be touched by {ask.action}: {', '.join(where.states or ())}"
            )
        ids = None if ask.ids is None else tuple(job_edits.check_id(id) for id in ask.ids)
        done, _, until = (ask.cursor or "").partition("/")
        after = [bound for bound in (where.after_id, done and job_edits.check_id(done)) if bound]
        # Jobs that are made while it goes on are left alone, or it might never end.
        before = [job_edits.check_id(until) if until else self.app.ids.new(self.app.clock.now())]
        before += [where.before_id] if where.before_id is not None else []
        return msgspec.structs.replace(
            where,
            ids=ids,
            states=tuple(sorted(states)),
            after_id=max(after, default=None),
            before_id=min(before),
        )


def _bulk(
    ask: BulkRequest,
    matched: int,
    *,
    done: int = 0,
    refused: int = 0,
    sample: tuple[JobView, ...] = (),
    next: str | None = None,
) -> BulkResult:
    return BulkResult(
        action=ask.action,
        dry_run=ask.dry_run,
        matched=matched,
        exact=matched < MOST_COUNTED,
        done=done,
        refused=refused,
        sample=sample,
        next=next,
    )


def _bound(at: datetime | None, name: str) -> JobId | None:
    """The smallest id that a job made at this time can have."""
    if at is None:
        return None
    if at.tzinfo is None:
        raise OptionError(f"{name} has no time zone: write it as 2030-01-31T08:00:00Z")
    return uuid7(max(int(at.timestamp() * 1000), 0), 0)


def _told(job: Job) -> dict[str, object]:
    """What the audit log keeps of a job: never its payload."""
    return {
        "task": job.task,
        "queue": job.queue,
        "state": job.state,
        "priority": job.priority,
        "run_at": job.run_at,
        "attempt": job.attempt,
    }
