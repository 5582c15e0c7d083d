"""Requests of the actions on the installation."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ...model import AuditResult
from .fields import ActionRequest, Cursor, Limit, Long, Text, Timestamp


class ActivityRequest(ActionRequest, frozen=True, kw_only=True):
    """The period to count finished jobs in, the size of a bucket, and by what to group."""

    hours: Annotated[float, Meta(gt=0, le=24 * 90)] = 12.0
    step_s: Annotated[int, Meta(ge=60, le=86_400)] = 300
    by: Literal["all", "queue", "task"] = "all"


class AuditRequest(ActionRequest, frozen=True, kw_only=True):
    """Which page of which audit entries."""

    actor: Text | None = None
    action: Text | None = None  # one action (job.cancel), or a prefix that ends with a dot (job.)
    object: Long | None = None
    tenant: Text | None = None
    result: AuditResult | None = None
    since: Timestamp | None = None
    until: Timestamp | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class VerifyAuditRequest(ActionRequest, frozen=True, kw_only=True):
    """Which seals of the audit log's hash chain to check: ``limit`` of them after this number."""

    after: Annotated[int, Meta(ge=1)] | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    expect_head: Text | None = None  # NUMBER:DIGEST, noted earlier: the chain must contain it
