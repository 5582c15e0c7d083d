"""What a running task can say and ask: ``Context``, and the capture of its log lines.

Owns the bounds on logs, progress, cost and audit, and keeps secrets out of them. Never touches the
store: the keeper and the settler carry what is gathered here.
"""

from __future__ import annotations

import logging
import math
import re
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ..core.payload import codec
from ..errors import OptionError
from ..model import AuditEntry, Job, LogLine, Progress
from ..runtime.clock import Clock
from ..tasks.current import CURRENT
from .redaction import Redactor

MOST_LINES = 200
MOST_LIVE = 50  # of them, shown while the attempt runs
LONGEST_LINE = 2000
MOST_AUDITED = 20
LONGEST_DETAILS = 4096
ACTION = re.compile(r"(?=.{1,100}\Z)[a-z0-9_-]+(\.[a-z0-9_-]+)+")
RESERVED = (  # what the system and its operators do is told by rota alone
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
    """Handed to a task whose parameter is annotated ``Context``. One per attempt."""

    __rota_context__ = True

    # Most attempts say nothing: what they could say stands here until they do.
    progress_json: str | None = None
    cost_cents: float = 0.0
    stop_reason: str | None = None
    stop_text: str | None = None  # what whoever cancelled it gave as the reason
    audited: tuple[AuditEntry, ...] = ()
    _lines: deque[LogLine] | None = None
    _dropped: int = 0
    _secrecy: Redactor | None = None

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
        """Say how far the job is; shown with it within about a second."""
        if isinstance(percent, bool) or not isinstance(percent, (int, float)) or not math.isfinite(percent):
            raise OptionError(f"progress percent={percent!r}: must be a number from 0 to 100")
        said = clean(self.redact(str(message)), 500)
        bounded = Progress(percent=min(max(float(percent), 0.0), 100.0), message=said)
        self.progress_json = msgspec.json.encode(bounded).decode()
        self._tell()

    def log(self, message: str, level: str = "info") -> None:
        """Add a line to this attempt's log, kept with the job."""
        if level not in LEVELS:
            raise OptionError(f"log level={level!r}: must be one of {', '.join(LEVELS)}")
        said = clean(self.redact(str(message)), LONGEST_LINE)
        self.extend([LogLine(at=self._clock.now(), level=level, message=said)])
        self._tell()

    def cost(self, cents: float) -> None:
        """Add to what this job has cost."""
        if isinstance(cents, bool) or not isinstance(cents, (int, float)) or not 0 <= cents <= 1e12:
            raise OptionError(f"cost cents={cents!r}: must be a number from 0 to 1e12")
        self.cost_cents += cents
        self._tell()

    def audit(self, action: str, /, **details: Any) -> None:
        """Tell the audit log what was done, such as ``ctx.audit("email.sent", to=address)``.

        Stored together with the outcome of this attempt; dropped, like it, if the lease is lost.
        """
        if not ACTION.fullmatch(action):
            raise OptionError(
                f"audit action={action!r}: write thing.deed, such as email.sent: at most 100 characters "
                "of a-z, 0-9, _ and -, with a dot"
            )
        if action.partition(".")[0] in RESERVED:
            raise OptionError(f"audit action={action!r}: that word belongs to rota; begin with another")
        if len(self.audited) >= MOST_AUDITED:
            raise OptionError(f"audit action={action!r}: an attempt can tell at most {MOST_AUDITED} lines")
        entry = AuditEntry(
            action=action,
            at=self._clock.now(),
            actor=f"task:{self.job.task}",
            tenant=self.job.tenant,
            object=f"job:{self.job.id}",
            after_json=self._details(action, details) if details else None,
        )
        self.audited = (*self.audited, entry)
        self._tell()

    def _details(self, action: str, details: dict[str, Any]) -> str:
        what = f"the details of audit action {action!r}"
        plain = msgspec.json.decode(codec.encode(details, limit=LONGEST_DETAILS, what=what))
        return msgspec.json.encode(self.secrecy.value(plain)).decode()

    @property
    def secrecy(self) -> Redactor:
        if self._secrecy is None:
            self._secrecy = Redactor(self.job.payload_json, self.secret_fields)
        return self._secrecy

    def redact(self, text: str) -> str:
        """The text without the secrets of the payload."""
        return self.secrecy.text(text) if self.secret_fields else text

    @property
    def mark(self) -> tuple[str | None, int] | None:
        """Changes whenever there is something new to show of the running attempt; None: nothing at all."""
        told = 0 if self._lines is None else self._dropped + len(self._lines)
        return None if self.progress_json is None and not told else (self.progress_json, told)

    @property
    def live_json(self) -> str:
        """What is shown while the attempt runs: its progress, and the newest lines of its log."""
        if self._lines is None:
            return self.progress_json or "null"
        newest = list(self._lines)[-MOST_LIVE:]
        progress = msgspec.json.decode(self.progress_json or "{}")
        return msgspec.json.encode({"percent": None, "message": "", **progress, "log": newest}).decode()

    @property
    def last_progress_json(self) -> str | None:
        """What stays when the attempt has ended: the live lines make way for the log of the attempt."""
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
        """Add lines; the oldest make room. Those of a child process come this way too."""
        if self._lines is None:
            self._lines = deque(maxlen=MOST_LINES)
        self._dropped += max(len(self._lines) + len(lines) - MOST_LINES, 0)
        self._lines.extend(lines)

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed(self)


class LogCapture(logging.Handler):
    """Copies records that the code of this worker's tasks emits into their attempts' logs."""

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
