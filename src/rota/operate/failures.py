"""Failed jobs grouped by error. Reads a bounded number of pages and keeps only what a group shows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ..core.jobs.fingerprint import fingerprint, folded
from ..model import Job, JobFilter, PageRequest
from ..store.protocol import Store
from .views import FailureGroup, FailureGroups, Visibility

PAGE, PAGES = 200, 10
MOST_IDS = 1000  # what a bulk action takes
LONGEST = 4000  # of a message: other programs may have stored anything


class FailureTally:
    """One group of failures while it is counted; jobs come newest first."""

    def __init__(self, job: Job, type: str, message: str) -> None:
        self.task, self.type, self.message = job.task, type, message
        self.first_at = self.last_at = _finished_at(job)
        self.ids: list[str] = []
        self.count = 0
        self.varies = False

    def add(self, job: Job, message: str) -> None:
        self.count += 1
        self.varies = self.varies or message != self.message
        self.first_at, self.last_at = (
            min(self.first_at, _finished_at(job)),
            max(self.last_at, _finished_at(job)),
        )
        if len(self.ids) < MOST_IDS:
            self.ids.append(job.id)

    def view(self, key: str) -> FailureGroup:
        return FailureGroup(
            fingerprint=key,
            task=self.task,
            type=self.type,
            pattern=folded(self.message) if self.varies else self.message,
            message=self.message,
            count=self.count,
            first_at=self.first_at,
            last_at=self.last_at,
            newest=self.ids[0],
            ids=tuple(self.ids),
        )


async def failures(store: Store, where: JobFilter, limit: int, visibility: Visibility) -> FailureGroups:
    """The newest jobs that match, in the ``limit`` largest groups."""
    groups: dict[str, FailureTally] = {}
    cursor: str | None = None
    for _ in range(PAGES):
        page = await store.jobs(where, PageRequest(limit=PAGE, cursor=cursor, brief=True))
        for job in page.items:
            type, message = _error(visibility.error(job.error_json))
            key = fingerprint(job.task, type, message)
            groups.setdefault(key, FailureTally(job, type, message)).add(job, message)
        if (cursor := page.next) is None:
            break
    largest = sorted(groups.items(), key=lambda one: (one[1].count, one[1].last_at), reverse=True)
    return FailureGroups(
        items=tuple(group.view(key) for key, group in largest[:limit]),
        groups=len(groups),
        of=sum(group.count for group in groups.values()),
        more=cursor is not None,
        last_at=max((group.last_at for group in groups.values()), default=None),
    )


def _finished_at(job: Job) -> datetime:
    return job.finished_at or job.created_at


def _error(error: Any) -> tuple[str, str]:
    """Its type and message; anything but an error record is a message as a whole."""
    if isinstance(error, dict) and "message" in error:
        type, message = error.get("type") or "", error["message"]
    else:
        type, message = "", "" if error is None else error
    return _text(type)[:LONGEST], _text(message)[:LONGEST]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
