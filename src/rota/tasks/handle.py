"""A job as the program that enqueued it sees it: the value, plus ways to wait for it and steer it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, Protocol, cast, overload

import msgspec

from ..core.plurals import plural
from ..durations import Duration
from ..errors import NotFound
from ..model import InsertResult, Job, JobId, NewJob, State
from ..runtime.portal import Portal
from ..runtime.sync_twins import sync_twin
from .type_variables import R_co

_SAME = tuple(
    name
    for name in NewJob.__struct_fields__
    if name in Job.__struct_fields__ and name not in ("id", "run_at")
)


class JobAccess(Protocol):
    """What a handle asks of the store its job is in; the app is one."""

    @property
    def portal(self) -> Portal: ...

    async def wait(self, job_id: JobId, timeout: Duration | None = None) -> Any: ...
    async def job(self, job_id: JobId) -> JobHandle: ...
    async def cancel(self, job_id: JobId, reason: str = "cancelled") -> JobHandle: ...
    async def retry(self, job_id: JobId) -> JobHandle: ...


class JobHandle(Job, Generic[R_co], frozen=True, kw_only=False):
    """A Job that can be waited for. The value is a snapshot; ``refresh()`` fetches a new one.

    ``JobHandle[int]`` is a job whose task returns an int; a bare ``JobHandle`` may return anything.
    """

    _access: Any = None

    def __repr__(self) -> str:
        return f"<JobHandle {self.id} of task {self.task!r}: {self.state}>"  # a payload may be secret

    @property
    def access(self) -> JobAccess:
        access: JobAccess = self._access
        return access

    @property
    def portal(self) -> Portal:
        """The event loop for callers that are not async."""
        return self.access.portal

    async def result(self, timeout: Duration | None = None) -> R_co:
        """Wait for the job to finish and return its output.

        Raises JobFailed or JobCancelled if that is its outcome, TimeoutError if it takes longer.
        An ``auto_remove`` job leaves nothing behind when it succeeds: its result is None.
        """
        try:
            output: R_co = await self.access.wait(self.id, timeout)
        except NotFound:
            if not self.auto_remove:
                raise
            output = cast(R_co, None)
        return output

    result_sync = sync_twin(result)

    async def refresh(self) -> JobHandle[R_co]:
        """The job as it is now."""
        return await self.access.job(self.id)

    refresh_sync = sync_twin(refresh)

    async def cancel(self, reason: str = "cancelled") -> None:
        """Cancel it: at once while queued; a running job is asked to stop."""
        await self.access.cancel(self.id, reason)

    cancel_sync = sync_twin(cancel)

    async def retry(self) -> JobHandle[R_co]:
        """Run a finished job again."""
        return await self.access.retry(self.id)

    retry_sync = sync_twin(retry)


def from_job(job: Job, access: JobAccess) -> JobHandle:
    return JobHandle(**{name: getattr(job, name) for name in Job.__struct_fields__}, _access=access)


def job_of(new: NewJob, now: datetime) -> Job:
    """The job that a request becomes when it is stored at ``now``."""
    same = {name: getattr(new, name) for name in _SAME}
    same["units"] = new.units or 1
    return Job(id=new.id, state=State.QUEUED, run_at=new.run_at or now, created_at=now, **same)


def from_new(new: NewJob, inserted: InsertResult, now: datetime, access: JobAccess) -> JobHandle:
    return JobHandle(  # by position, which is quicker: every enqueue ends here
        inserted.id, new.task, inserted.state, new.run_at or now, now, new.queue, new.tenant, new.priority,
        new.payload_json, None, None, 0, new.max_attempts, 0, None, None, None, None, new.timeout,
        new.backoff, new.key, new.auto_remove, new.tags, new.parent, new.origin, new.schedule,
        new.scheduled_for, 0.0, None, False, 0, new.expires_at, new.keep, 0,
        new.concurrency_key, new.units or 1, new.price, access,
    )  # fmt: skip


class Handles(Sequence[JobHandle]):
    """The jobs of one bulk call. Each becomes a handle when it is accessed: nothing is held twice."""

    def __init__(
        self, jobs: Sequence[NewJob], inserted: Sequence[InsertResult], now: datetime, access: JobAccess
    ) -> None:
        self._jobs, self._inserted, self._now, self._access = jobs, inserted, now, access

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, index: int) -> JobHandle: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[JobHandle]: ...
    def __getitem__(self, index: int | slice) -> JobHandle | Sequence[JobHandle]:
        if isinstance(index, slice):
            return Handles(self._jobs[index], self._inserted[index], self._now, self._access)
        return from_new(self._jobs[index], self._inserted[index], self._now, self._access)

    def __repr__(self) -> str:
        return f"<{plural(len(self), 'job')}>"

    def reached_by(self, access: JobAccess) -> Handles:
        return Handles(self._jobs, self._inserted, self._now, access)


def reached_by(access: JobAccess, found: Sequence[JobHandle]) -> Sequence[JobHandle]:
    """The same jobs, read and steered by another client."""
    return (
        found.reached_by(access) if isinstance(found, Handles) else [from_job(job, access) for job in found]
    )


def plain(job: Job) -> dict[str, Any]:
    """The job under its promised names, as plain data for JSON. A broken payload stays readable."""
    result: dict[str, Any] = {name: getattr(job, name) for name in PROMISED}
    for name in ("payload", "output", "error", "progress"):
        text = getattr(job, f"{name}_json")
        try:
            result[name] = None if text is None else msgspec.json.decode(text)
        except msgspec.DecodeError:
            result[name] = {"unreadable": text[:1000]}
    result["state"] = str(job.state)
    result["tags"] = list(job.tags)
    return result


PROMISED_ORDER = [
    "id",
    "tenant",
    "queue",
    "task",
    "state",
    "priority",
    "payload",
    "output",
    "error",
    "attempt",
    "max_attempts",
    "run_at",
    "scheduled_for",
    "origin",
    "schedule",
    "key",
    "tags",
    "parent",
    "cost_cents",
    "progress",
    "worker",
    "lease_until",
    "created_at",
    "started_at",
    "finished_at",
]
PROMISED = tuple(n for n in PROMISED_ORDER if n not in ("payload", "output", "error", "progress"))
