"""What admin actions return: values for people and programs, secrets masked. The JSON of the HTTP API.

A view is built from model values here and nowhere else.
"""

from .access import CurrentActor, EndedSessions, NewToken, OpenSession, TokenView, UserView
from .audit import AuditVerification, AuditView, ChainProblem, audit_view, is_anonymous
from .base import View, Visibility
from .gates import GateView, gate_view, visible_gate
from .jobs import (
    AttemptView,
    BulkResult,
    Count,
    EnqueuedView,
    FailureGroup,
    FailureGroups,
    JobView,
    attempt_view,
    enqueued_view,
    job_view,
)
from .limits import HolderView, LimitView, limit_view, with_holders
from .schedules import (
    Backfill,
    CalendarView,
    Fires,
    FireView,
    Preview,
    ScheduleView,
    TruncatedSchedule,
    UpcomingFire,
    schedule_view,
)
from .system import (
    ActivityBucket,
    DoctorReport,
    QueueView,
    ServiceView,
    Setting,
    Stats,
    TaskView,
    WorkerView,
)
from .tenants import (
    BudgetView,
    QuotaView,
    TenantLimitView,
    TenantView,
    budget_view,
    quota_views,
    tenant_limit_view,
)

__all__ = [
    "ActivityBucket",
    "AttemptView",
    "AuditVerification",
    "AuditView",
    "Backfill",
    "BudgetView",
    "BulkResult",
    "CalendarView",
    "ChainProblem",
    "Count",
    "CurrentActor",
    "DoctorReport",
    "EndedSessions",
    "EnqueuedView",
    "FailureGroup",
    "FailureGroups",
    "FireView",
    "Fires",
    "GateView",
    "HolderView",
    "JobView",
    "LimitView",
    "NewToken",
    "OpenSession",
    "Preview",
    "QueueView",
    "QuotaView",
    "ScheduleView",
    "ServiceView",
    "Setting",
    "Stats",
    "TaskView",
    "TenantLimitView",
    "TenantView",
    "TokenView",
    "TruncatedSchedule",
    "UpcomingFire",
    "UserView",
    "View",
    "Visibility",
    "WorkerView",
    "attempt_view",
    "audit_view",
    "budget_view",
    "enqueued_view",
    "gate_view",
    "is_anonymous",
    "job_view",
    "limit_view",
    "quota_views",
    "schedule_view",
    "tenant_limit_view",
    "visible_gate",
    "with_holders",
]
