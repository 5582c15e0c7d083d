"""What an explanation consists of: reasons, each with a code that programs can rely on."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ...model import JobId, Value

Code = Literal[
    "ended", "quarantined", "running", "lease_expired", "stopping", "dependency", "paused", "due_later",
    "retry_later", "budget", "oversized", "strict", "limit_full", "rate", "no_worker", "unknown_task",
    "unserved_queue", "in_line", "next",
]  # fmt: skip


class Reason(Value, frozen=True, kw_only=True):
    code: Code
    text: str
    remedy: str | None = None
    clears_at: datetime | None = None  # when it clears by itself
    limit: str | None = None  # the name of the limit that it is about
    blocker: JobId | None = None  # the job that is in the way, or the first of them


def exact(at: datetime | None) -> str:
    return "an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"
