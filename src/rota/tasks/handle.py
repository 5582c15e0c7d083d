"""A job in the hands of the program that enqueued it: the value, plus ways to wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, overload

import msgspec

from ..errors import NotFound
from ..model import InsertResult, Job, NewJob, State

if TYPE_CHECKING:
    from ..app import Rota

_SAME = tuple(
    name
    for name in NewJob.__struct_fields__
    if name in Job.__struct_fields__ and name not in ("id", "run_at")
)


class JobHandle(Job, frozen=True, kw_only=False):
    """A Job that knows its app. The value is a snapshot; ``refresh()`` fetches a new one."""

    _app: Any = None

    @property
    def app(self) -> Rota:
        app: Rota = self._app
        return app

    async def result(self, timeout: float | None = None) -> Any:
        """Wait for the job to end and return its output.

        Raises JobFailed or JobCancelled if it ends so, TimeoutError if it has not ended in time.
        An ``auto_remove`` job leaves nothing behind when it succeeds: its result is None.
        """
        try:
            return await self.app.wait(self.id, timeout)
        except NotFound:
            if self.auto_remove:
                return None
            raise

    def result_sync(self, timeout: float | None = None) -> Any:
        """``result`` for code that is not async."""
        return self.app.portal.call(self.result, timeout)

    async def refresh(self) -> JobHandle:
        """The job as it is now."""
        return await self.app.job(self.id)

    async def cancel(self, reason: str = "cancelled") -> None:
        """Cancel it: at once while queued; a running job is asked to stop."""
        await self.app.cancel(self.id, reason)

    async def retry(self) -> JobHandle:
        """Run a job that has ended once more."""
        return await self.app.retry(self.id)


def from_job(job: Job, app: Rota) -> JobHandle:
    return JobHandle(**{name: getattr(job, name) for name in Job.__struct_fields__}, _app=app)


def job_of(new: NewJob, now: datetime) -> Job:
    """The job that a request makes when it is stored at ``now``."""
    same = {name: getattr(new, name) for name in _SAME}
    return Job(id=new.id, state=State.QUEUED, run_at=new.run_at or now, created_at=now, **same)


def from_new(new: NewJob, inserted: InsertResult, now: datetime, app: Rota) -> JobHandle:
    return JobHandle(  # by position, which is quicker: every enqueue ends here
        inserted.id, new.task, inserted.state, new.run_at or now, now, new.queue, new.tenant, new.priority,
        new.payload_json, None, None, 0, new.max_attempts, 0, None, None, None, None, new.timeout,
        new.backoff, new.key, new.auto_remove, new.tags, new.parent, new.origin, new.schedule,
        new.scheduled_for, 0.0, None, False, app,
    )  # fmt: skip


class Handles(Sequence[JobHandle]):
    """The jobs of one bulk call, made into handles as they are looked at: nothing is held twice."""

    def __init__(
        self, jobs: Sequence[NewJob], inserted: Sequence[InsertResult], now: datetime, app: Rota
    ) -> None:
        self._jobs, self._inserted, self._now, self._app = jobs, inserted, now, app

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, index: int) -> JobHandle: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[JobHandle]: ...
    def __getitem__(self, index: int | slice) -> JobHandle | Sequence[JobHandle]:
        if isinstance(index, slice):
            return Handles(self._jobs[index], self._inserted[index], self._now, self._app)
        return from_new(self._jobs[index], self._inserted[index], self._now, self._app)

    def __repr__(self) -> str:
        return f"<{len(self)} jobs>"


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
