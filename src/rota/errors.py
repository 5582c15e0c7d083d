"""Every error rota raises.

RotaError
├── ConfigError            a setting, URL or app reference that cannot be used
│   └── MissingDriver      the store's driver is not installed
├── StoreError
│   ├── StoreUnavailable   the store cannot be reached; the call can be retried
│   └── SchemaMismatch     the store's schema is older or newer than this program
├── PayloadError           arguments that cannot be stored or do not fit the task
├── OptionError            a job option out of range
├── AlreadyRegistered      a name taken twice in one process
├── AlreadyRunning         an app started twice
├── AppClosed              the app was closed during a sync call
├── DuplicateJob           a live job already holds the key
├── QuotaExceeded          the tenant has used up what it may have
├── NotFound               no such job, task or document
├── IllegalMove            the object's state forbids this
├── Forbidden              the caller's role or tenant does not allow this
├── InvalidSchedule        a schedule's rule cannot be used
├── JobFailed              raised by ``job.result()``
├── JobCancelled           raised by ``job.result()``
└── LeaseLost              this attempt no longer owns its job

``Snooze``, ``Cancel`` and ``Fail`` are outcomes that a task raises on purpose; they are not errors and so
do not derive from ``RotaError``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import durations
from .durations import Duration


class RotaError(Exception):
    """Root of every error that rota raises."""


class ConfigError(RotaError):
    """A setting, URL or reference cannot be used; the message names it and the remedy."""


class MissingDriver(ConfigError):
    """The driver of the chosen store is not installed."""


class StoreError(RotaError):
    """The store answered with an error."""


class StoreUnavailable(StoreError):
    """The store cannot be reached, or the connection was lost before it answered.

    ``is_temporary``: it may be back in a moment, and this call has not waited for that yet.
    """

    def __init__(self, message: str = "", *, is_temporary: bool = True) -> None:
        super().__init__(message)
        self.is_temporary = is_temporary


class SchemaMismatch(StoreError):
    """The store's schema does not fit this version of rota."""


class PayloadError(RotaError):
    """The arguments of a job cannot be stored, or do not fit the task's signature."""


class OptionError(RotaError, ValueError):
    """A job option has a value that is out of range or of the wrong kind."""


class AlreadyRegistered(RotaError):
    """A name was registered twice in one process."""


class AlreadyRunning(RotaError):
    """The app is already running in this process."""


class AppClosed(RotaError):
    """The app was closed while a sync call was under way; what it asked for may have been done."""


class DuplicateJob(RotaError):
    """A live job already holds this key."""

    def __init__(self, message: str, job_id: str | None = None) -> None:
        super().__init__(message)
        self.job_id = job_id


class QuotaExceeded(RotaError):
    """The tenant has as much as it may have; nothing was stored. ``quota`` names what it has used up."""

    def __init__(self, message: str, tenant: str | None = None, quota: str | None = None) -> None:
        super().__init__(message)
        self.tenant = tenant
        self.quota = quota


class NotFound(RotaError):
    """There is no such job, task or document."""


class IllegalMove(RotaError):
    """The state of the object forbids this move."""

    def __init__(self, message: str, state: str | None = None) -> None:
        super().__init__(message)
        self.state = state


class Forbidden(RotaError):
    """The caller's role or tenant does not allow this."""


class InvalidSchedule(RotaError, ValueError):
    """The rule of a schedule cannot be used."""


class JobFailed(RotaError):
    """The job that was waited for has failed."""

    def __init__(self, message: str, error: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error = error


class JobCancelled(RotaError):
    """The job that was waited for was cancelled."""


class LeaseLost(RotaError):
    """Another worker owns this job now; nothing this attempt writes will be accepted."""


class SyncCallWarning(RuntimeWarning):
    """A sync call blocks the event loop of the coroutine that makes it."""


class Snooze(Exception):
    """Raise in a task to run it again after ``seconds`` (or ``"15m"``); no attempt is charged."""

    def __init__(self, seconds: Duration = 60.0, reason: str | None = None) -> None:
        self.seconds = durations.seconds("seconds", seconds, -durations.HUGE, durations.HUGE, OptionError)
        super().__init__(reason or f"snoozed for {durations.short(self.seconds)}")
        self.reason = reason


class Cancel(Exception):
    """Raise in a task to end the job as cancelled."""

    def __init__(self, reason: str = "cancelled by the task") -> None:
        super().__init__(reason)
        self.reason = reason


class Fail(Exception):
    """Raise in a task to end the job as failed at once, whatever attempts are left.

    ``details``, plain JSON data, are stored in ``job.error["details"]``.
    """

    def __init__(self, reason: str = "failed by the task", details: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = details
