"""Pauses."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

from .choices import Scope
from .value import Value


class Gate(Value, frozen=True, kw_only=True):
    """A pause. While it is in force, no job it covers is started; running jobs continue."""

    scope: Scope
    name: str | None = None  # of the queue, task, tenant or schedule; None for everything
    tenant: str | None = None  # of a schedule
    reason: str = ""
    actor: str = "system"
    since_at: datetime
    until_at: datetime | None = None  # None: until it is resumed
    by_tenant: str | None = None  # the tenant of the operator who paused; None: an operator for all tenants

    @property
    def id(self) -> str:
        return gate_id(self.scope, self.name, self.tenant)


def gate_id(scope: str, name: str | None = None, tenant: str | None = None) -> str:
    """``all``, ``queue:mail``, ``schedule:default/nightly``: a slash in a tenant's name is escaped."""
    if scope == "all":
        return "all"
    if scope == "schedule":
        return f"schedule:{quote(tenant or 'default', safe='')}/{name}"
    return f"{scope}:{name}"
