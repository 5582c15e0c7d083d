"""``Context``: what a running task can report and ask, and the capture of its log lines.

Owns the limits on logs, progress, cost and audit entries, and keeps secrets out of them. Never touches
the store: heartbeats and settlements carry what is collected here.
"""

from __future__ import annotations

import logging
import math
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack, overload

import msgspec

from ..core.jobs.options import JobOptions
from ..core.payload import codec
from ..errors import OptionError
from ..model import AuditEntry, Job, LogLine, NewJob, Progress
from ..runtime.clock import Clock
from ..tasks.current import CURRENT
from ..tasks.handle import job_of
from ..tasks.task import NO_PRODUCER, BoundTask, Task, TaskProducer
from ..tasks.type_variables import P
from .follow_ups import check_number, follow_up
from .redaction import Redactor

MAX_LINES = 200
MAX_LIVE_LINES = 50  # of them, shown while the attempt runs
LONGEST_LINE = 2000
LONGEST_PROGRESS = 500
MAX_AUDIT_ENTRIES = 20
LONGEST_DETAILS = 4096
ACTION = re.compile(r"(?=.{1,100}\Z)[a-z0-9_-]+(\.[a-z0-9_-]+)+")
RESERVED = (  # only rota records what the system and its operators do
    "all", "audit", "calendar", "config", "gate", "job", "jobs", "queue", "schedule", "session", "task",
    "tenant", "token", "user", "worker",
)  # fmt: skip
LEVELS = ("debug", "info", "warning", "error", "critical")


def clean(text: str, longest: int) -> str:
    """Text that every store and terminal can take: no NUL, no lone surrogates, bounded."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return text.replace("\0", "�").encode("utf-8", "replace").decode("utf-8")


class Context:
    """Given to a task whose parameter is annotated ``Context``. One per attempt."""

    __rota_context__ = True

    # Most attempts report nothing: these defaults of the class serve until they do.
    is_silent: bool = True
    progress_json: str | None = None
    cost_cents: float | None = None  # None: none was reported, which is not a cost of 0
    stop_reason: str | None = None
    cancel_reason: str | None = None  # the reason given with the cancel
    audit_entries: tuple[AuditEntry, ...] = ()
    producer: TaskProducer = NO_PRODUCER  # of the task that runs
    _follow_ups: Sequence[NewJob] = ()
    _lines: deque[LogLine] | None = None
    _dropped: int = 0
    _redactor: Redactor | None = None

    def __init__(
        self,
        job: Job,
        worker: str,
        clock: Clock,
        changed: Callable[[Context], None] | None = None,
        secret_fields: tuple[str, ...] = (),
    ) -> None:
        self.job = job
        self.worker = worker
        self._clock = clock
        self._changed = changed
        self.secret_fields = secret_fields

    @property
    def attempt(self) -> int:
        return self.job.attempt

    @property
    def cancelled(self) -> bool:
        """True once this attempt should stop: cancelled, out of time, its lease lost, or shutting down."""
        return self.stop_reason is not None

    def progress(self, percent: float, message: str = "") -> None:
        """Report how far the job is; shown with it within about a second."""
        if isinstance(percent, bool) or not isinstance(percent, (int, float)) or not math.isfinite(percent):
            raise OptionError(f"progress percent={percent!r}: must be a number from 0 to 100")
        text = clean(self.redact(str(message)), LONGEST_PROGRESS)
        bounded = Progress(percent=min(max(float(percent), 0.0), 100.0), message=text)
        self.progress_json = msgspec.json.encode(bounded).decode()
        self._report_change()

    def log(self, message: str, level: str = "info") -> None:
        """Add a line to this attempt's log, kept with the job."""
        if level not in LEVELS:
            raise OptionError(f"log level={level!r}: must be one of {', '.join(LEVELS)}")
        text = clean(self.redact(str(message)), LONGEST_LINE)
        self.extend([LogLine(at=self._clock.now(), level=level, message=text)])
        self._report_change()

    def cost(self, cents: float) -> None:
        """Add to what this job has cost. 0 counts as reported too: then its ``price`` is not charged."""
        if isinstance(cents, bool) or not isinstance(cents, (int, float)) or not 0 <= cents <= 1e12:
            raise OptionError(f"cost cents={cents!r}: must be a number from 0 to 1e12")
        self.cost_cents = (self.cost_cents or 0.0) + cents
        self._report_change()

    def audit(self, action: str, /, **details: Any) -> None:
        """Record in the audit log what was done, such as ``ctx.audit("email.sent", to=address)``.

        Stored together with the outcome of this attempt; dropped, like it, if the lease is lost.
        """
        _check_action(action)
        if len(self.audit_entries) >= MAX_AUDIT_ENTRIES:
            raise OptionError(
                f"audit action={action!r}: an attempt can record at most {MAX_AUDIT_ENTRIES} audit entries"
            )
        entry = AuditEntry(
            action=action,
            at=self._clock.now(),
            actor=f"task:{self.job.task}",
            tenant=self.job.tenant,
            object=f"job:{self.job.id}",
            after_json=_details_json(action, details, self.redactor) if details else None,
        )
        self.audit_entries = (*self.audit_entries, entry)
        self._report_change()

    @overload
    def enqueue(
        self, task: Task[P, Any] | BoundTask[P, Any], /, *args: P.args, **kwargs: P.kwargs
    ) -> Job: ...
    @overload
    def enqueue(
        self, task: str, payload: Mapping[str, Any] | None = None, /, **given: Unpack[JobOptions]
    ) -> Job: ...
    def enqueue(self, task: Task[..., Any] | BoundTask[..., Any] | str, /, *args: Any, **kwargs: Any) -> Job:
        """Add a follow-up job, stored together with the success of this attempt or not at all.

        ``ctx.enqueue(send, order_id=42)``, ``ctx.enqueue(send.options(delay=60), order_id=42)``, or by name
        as with ``app.enqueue``: ``ctx.enqueue("send", {"order_id": 42}, delay=60)``. Returns the job as it
        will be stored; it does not exist yet.
        """
        now = self._clock.now()
        new = follow_up(self, self.producer, now, task, args, kwargs)
        check_number(self._follow_ups, new)
        self.gather([new])
        return job_of(new, now)

    def gather(self, jobs: Sequence[NewJob]) -> None:
        """Add follow-up jobs. Those of a child process arrive here too."""
        self.is_silent = False
        self.__dict__.setdefault("_follow_ups", []).extend(jobs)  # threads may add at the same time

    @property
    def follow_ups(self) -> tuple[NewJob, ...]:
        return tuple(self._follow_ups)

    def now(self) -> datetime:
        """The store's time, as this worker knows it."""
        return self._clock.now()

    @property
    def redactor(self) -> Redactor:
        if self._redactor is None:
            self._redactor = Redactor(self.job.payload_json, self.secret_fields)
        return self._redactor

    def redact(self, text: str) -> str:
        """The text without the secrets of the payload."""
        return self.redactor.text(text) if self.secret_fields else text

    @property
    def mark(self) -> tuple[str | None, int] | None:
        """Changes whenever there is something new to show of the running attempt; None: nothing at all."""
        lines = 0 if self._lines is None else self._dropped + len(self._lines)
        return None if self.progress_json is None and not lines else (self.progress_json, lines)

    @property
    def live_json(self) -> str:
        """What is shown while the attempt runs: its progress, and the newest lines of its log."""
        if self._lines is None:
            return self.progress_json or "null"
        newest = list(self._lines)[-MAX_LIVE_LINES:]
        progress = msgspec.json.decode(self.progress_json or "{}")
        return msgspec.json.encode({"percent": None, "message": "", **progress, "log": newest}).decode()

    @property
    def last_progress_json(self) -> str | None:
        """What stays after the attempt: its log replaces the lines that were shown live."""
        return self.progress_json if self._lines is None else self.progress_json or "null"

    @property
    def lines(self) -> tuple[LogLine, ...]:
        if self._lines is None:
            return ()
        if not self._dropped:
            return tuple(self._lines)
        first = LogLine(
            at=self._lines[0].at, level="info", message=f"… {self._dropped} earlier lines were dropped"
        )
        return (first, *self._lines)

    def extend(self, lines: list[LogLine]) -> None:
        """Add lines and drop the oldest. The lines of a child process arrive here too."""
        self.is_silent = False
        if self._lines is None:
            self._lines = deque(maxlen=MAX_LINES)
        self._dropped += max(len(self._lines) + len(lines) - MAX_LINES, 0)
        self._lines.extend(lines)

    def _report_change(self) -> None:
        self.is_silent = False
        if self._changed is not None:
            self._changed(self)


def _check_action(action: str) -> None:
    if not ACTION.fullmatch(action):
        raise OptionError(
            f"audit action={action!r}: use a name such as email.sent: at most 100 characters of a-z, 0-9, "
            "_ and -, with a dot"
        )
    if action.partition(".")[0] in RESERVED:
        raise OptionError(f"audit action={action!r}: this prefix is reserved; use your own, such as shop.")


def _details_json(action: str, details: dict[str, Any], redactor: Redactor) -> str:
    encoded = codec.encode(details, limit=LONGEST_DETAILS, what=f"the details of audit action {action!r}")
    return msgspec.json.encode(redactor.value(msgspec.json.decode(encoded))).decode()


class LogCapture(logging.Handler):
    """Copies the log records of running tasks into the logs of their attempts."""

    def __init__(self, worker: str | None = None) -> None:
        super().__init__()
        self._worker = worker  # None: the only one in this process

    def emit(self, record: logging.LogRecord) -> None:
        context = CURRENT.get()
        if context is None or record.name.startswith("rota."):
            return
        if self._worker not in (None, context.worker):
            return
        try:
            level = record.levelname.lower()
            context.log(f"{record.name}: {record.getMessage()}", level if level in LEVELS else "info")
        except Exception:
            self.handleError(record)
