"""The requests of all admin actions, as values. Query strings and bodies are decoded into these.

Every field has a default or is required. A list in a query string is written with commas. Holds no rules
beyond the shape and bounds of a request.
"""

from .access import (
    CreateTokenRequest,
    EndSessionsRequest,
    PutUserRequest,
    RotateTokenRequest,
    SetPasswordRequest,
)
from .fields import MOST, SHORTEST_PASSWORD, ActionRequest, EmptyRequest
from .gates import GateRequest, PauseRequest
from .jobs import (
    BulkRequest,
    CancelRequest,
    CountRequest,
    EnqueueRequest,
    FailuresRequest,
    JobSelector,
    JobsRequest,
    UpdateJobRequest,
)
from .limits import PutLimitRequest
from .schedules import (
    BackfillRequest,
    CreateScheduleRequest,
    DisableRequest,
    FiresRequest,
    PreviewRequest,
    PutCalendarRequest,
    RuleFields,
    RunsRequest,
    SchedulesRequest,
    SummaryRequest,
    TenantRequest,
    UpdateScheduleRequest,
    ValidateRequest,
)
from .system import ActivityRequest, AuditRequest, VerifyAuditRequest
from .tenants import PutTenantRequest, TenantsRequest

__all__ = [
    "MOST",
    "SHORTEST_PASSWORD",
    "ActionRequest",
    "ActivityRequest",
    "AuditRequest",
    "BackfillRequest",
    "BulkRequest",
    "CancelRequest",
    "CountRequest",
    "CreateScheduleRequest",
    "CreateTokenRequest",
    "DisableRequest",
    "EmptyRequest",
    "EndSessionsRequest",
    "EnqueueRequest",
    "FailuresRequest",
    "FiresRequest",
    "GateRequest",
    "JobSelector",
    "JobsRequest",
    "PauseRequest",
    "PreviewRequest",
    "PutCalendarRequest",
    "PutLimitRequest",
    "PutTenantRequest",
    "PutUserRequest",
    "RotateTokenRequest",
    "RuleFields",
    "RunsRequest",
    "SchedulesRequest",
    "SetPasswordRequest",
    "SummaryRequest",
    "TenantRequest",
    "TenantsRequest",
    "UpdateJobRequest",
    "UpdateScheduleRequest",
    "ValidateRequest",
    "VerifyAuditRequest",
]
