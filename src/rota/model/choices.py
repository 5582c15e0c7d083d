"""Enumerations and closed choices, each defined once. The dashboard, CLI and OpenAPI list them from here."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

Origin = Literal["api", "scheduler", "manual", "catchup", "sql", "job"]
Executor = Literal["async", "thread", "process"]
OnConflict = Literal["return", "raise", "replace"]
OnScheduleConflict = Literal["raise", "update"]  # a schedule's name is in use
Insertion = Literal["created", "existing", "replaced", "refused"]
FireOrigin = Literal["scheduler", "catchup"]
Missed = Literal["skip", "latest", "all"]
Overlap = Literal["allow", "skip", "queue", "cancel_previous"]
CalendarMode = Literal["skip", "next_working_day"]
Source = Literal["code", "user", "registry", "sql"]
Role = Literal["producer", "viewer", "operator", "admin"]
Via = Literal["python", "cli", "http", "system"]
Wakes = Literal["none", "any", "queue"]
AuditResult = Literal["done", "denied", "failed"]
Scope = Literal["all", "queue", "task", "tenant", "schedule"]
Level = Literal["ok", "warning", "problem"]
Period = Literal["hour", "day", "week", "month"]  # of a budget, in UTC
AttemptOutcome = Literal["succeeded", "failed", "snoozed", "cancelled", "rescued", "released"]


class State(StrEnum):
    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
LIVE = frozenset({State.WAITING, State.QUEUED, State.RUNNING})
