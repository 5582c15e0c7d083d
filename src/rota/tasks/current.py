"""The job that the running code belongs to, by context variable.

A worker sets it around an attempt. Enqueueing reads it, so that a job enqueued by a job knows its parent
and tenant; log capture reads it to find the attempt. Must never import the worker.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from ..model import Job


class RunningJob(Protocol):
    """What is known of an attempt from the outside; ``worker.context.Context`` is one."""

    job: Job
    worker: str

    def log(self, message: str, level: str = "info") -> None: ...
    def redact(self, text: str) -> str: ...


CURRENT: ContextVar[RunningJob | None] = ContextVar("rota_current", default=None)
