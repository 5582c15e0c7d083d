"""Frozen values that pass between the packages of rota, one module per subject.

Must never do I/O, read the clock or hold policy. Instants are aware UTC datetimes and end in ``_at``
(``lease_until`` and ``scheduled_for`` by promise). JSON texts are canonical (see ``core/payload``) and end in
``_json``; their decoded forms are properties, so that a job passes through without being parsed.
"""

from .audit import Actor, AuditEntry, AuditFilter
from .choices import (
    FINAL,
    LIVE,
    AttemptOutcome,
    AuditResult,
    CalendarMode,
    Executor,
    FireOrigin,
    Insertion,
    Level,
    Missed,
    OnConflict,
    Origin,
    Overlap,
    Role,
    Scope,
    Source,
    State,
    Via,
)
from .gate import Gate, gate_id
from .job import (
    Attempt,
    Backoff,
    Edit,
    ErrorRecord,
    InsertResult,
    Job,
    JobFilter,
    Lease,
    LogLine,
    NewJob,
    Progress,
)
from .overview import ActivityCount, Overview, QueueDepth
from .paging import Page, PageRequest
from .schedule import DueSchedules, Firing, Schedule, ScheduleFilter
from .store import Capabilities, Document, Finding
from .turn import ClaimRequest, Heartbeat, HeartbeatReply, ProgressUpdate, Settlement, TurnResult
from .value import JobId, Value

__all__ = [
    "FINAL",
    "LIVE",
    "ActivityCount",
    "Actor",
    "Attempt",
    "AttemptOutcome",
    "AuditEntry",
    "AuditFilter",
    "AuditResult",
    "Backoff",
    "CalendarMode",
    "Capabilities",
    "ClaimRequest",
    "Document",
    "DueSchedules",
    "Edit",
    "ErrorRecord",
    "Executor",
    "Finding",
    "FireOrigin",
    "Firing",
    "Gate",
    "Heartbeat",
    "HeartbeatReply",
    "InsertResult",
    "Insertion",
    "Job",
    "JobFilter",
    "JobId",
    "Lease",
    "Level",
    "LogLine",
    "Missed",
    "NewJob",
    "OnConflict",
    "Origin",
    "Overlap",
    "Overview",
    "Page",
    "PageRequest",
    "Progress",
    "ProgressUpdate",
    "QueueDepth",
    "Role",
    "Schedule",
    "ScheduleFilter",
    "Scope",
    "Settlement",
    "Source",
    "State",
    "TurnResult",
    "Value",
    "Via",
    "gate_id",
]
