"""Requests of the actions on tenants."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, UnsetType

from .fields import ActionRequest, Cursor, Text


class TenantsRequest(ActionRequest, frozen=True, kw_only=True):
    """Which page of the tenants, by name; without ``limit``, all of them."""

    limit: Annotated[int, Meta(ge=1, le=1000)] | None = None
    cursor: Cursor | None = None


class PutTenantRequest(ActionRequest, frozen=True, kw_only=True):
    """What to change of a tenant's rule: a field that is left out stays as it is, null clears it."""

    weight: float | UnsetType | None = msgspec.UNSET
    max_priority: int | UnsetType | None = msgspec.UNSET
    waiting: int | UnsetType | None = msgspec.UNSET
    schedules: int | UnsetType | None = msgspec.UNSET
    bytes_per_day: int | UnsetType | None = msgspec.UNSET
    budget: Text | UnsetType | None = msgspec.UNSET  # such as 50.00/day
    budget_alert: float | UnsetType | None = msgspec.UNSET
    retention_days: float | UnsetType | None = msgspec.UNSET
