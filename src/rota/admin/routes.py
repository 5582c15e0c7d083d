"""The table of routes: which HTTP request calls which action. Everything else is read off the action.

The server serves it, the OpenAPI document describes it, and the command line calls a remote server by it.
Must not import a web framework: the command line needs none.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, get_type_hints

from ..operate.access import AccessActions
from ..operate.gates import GateActions
from ..operate.jobs import JobActions
from ..operate.limits import LimitActions
from ..operate.requests import ActionRequest
from ..operate.schedules import ScheduleActions
from ..operate.system import SystemActions
from ..operate.tenants import TenantActions

PREFIX = "/api/admin"
GROUPS: dict[str, type] = {
    "jobs": JobActions,
    "schedules": ScheduleActions,
    "gates": GateActions,
    "tenants": TenantActions,
    "limits": LimitActions,
    "system": SystemActions,
    "access": AccessActions,
}


class ActionSignature(NamedTuple):
    """The types of an action: names in the path, request and view."""

    path: tuple[str, ...]
    request: type[ActionRequest] | None  # the query of a GET or DELETE, the body of the others
    view: Any  # None: no content


class Route:
    """One HTTP request and the action it calls."""

    def __init__(self, method: str, path: str, action: str, status: int = 200) -> None:
        self.method, self.path, self.action, self.status = method, path, action, status

    def __repr__(self) -> str:
        return f"{self.method} {self.path} → {self.action}"

    @cached_property
    def function(self) -> Callable[..., Any]:
        group, _, name = self.action.partition(".")
        found: Callable[..., Any] = getattr(GROUPS[group], name)
        return found

    @property
    def permission(self) -> str:
        permission: str = self.function.permission  # type: ignore[attr-defined]
        return permission

    @property
    def help(self) -> str:
        return inspect.getdoc(self.function) or ""

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PUT")

    @cached_property
    def signature(self) -> ActionSignature:
        hints = get_type_hints(inspect.unwrap(self.function))
        view = hints.pop("return")
        request = hints.pop("request", None)
        names = tuple(name for name in inspect.signature(self.function).parameters if name in hints)
        assert set(names) == set(re.findall(r"{(\w+)(?::path)?}", self.path)), self
        return ActionSignature(names, request, None if view is type(None) else view)


# A name may contain slashes: a path that ends with a fixed word precedes one that ends with the name.
ROUTES: tuple[Route, ...] = (
    Route("GET", "/me", "system.me"),
    Route("GET", "/jobs", "jobs.list"),
    Route("POST", "/jobs", "jobs.enqueue", 201),
    Route("GET", "/jobs/stats", "system.stats"),
    Route("GET", "/jobs/count", "jobs.count"),
    Route("POST", "/jobs/bulk", "jobs.bulk"),
    Route("GET", "/failures", "jobs.failures"),
    Route("GET", "/jobs/{id}", "jobs.show"),
    Route("DELETE", "/jobs/{id}", "jobs.delete", 204),
    Route("GET", "/jobs/{id}/attempts", "jobs.attempts"),
    Route("GET", "/jobs/{id}/why", "jobs.why"),
    Route("POST", "/jobs/{id}/retry", "jobs.retry"),
    Route("POST", "/jobs/{id}/cancel", "jobs.cancel"),
    Route("POST", "/jobs/{id}/move", "jobs.move"),
    Route("GET", "/schedules", "schedules.list"),
    Route("POST", "/schedules", "schedules.create", 201),
    Route("POST", "/schedules/validate", "schedules.validate"),
    Route("GET", "/schedules/fires", "schedules.fires"),
    Route("POST", "/schedules/{id:path}/enable", "schedules.enable"),
    Route("POST", "/schedules/{id:path}/disable", "schedules.disable"),
    Route("POST", "/schedules/{id:path}/trigger", "schedules.trigger"),
    Route("POST", "/schedules/{id:path}/backfill", "schedules.backfill"),
    Route("GET", "/schedules/{id:path}/preview", "schedules.preview"),
    Route("GET", "/schedules/{id:path}/runs", "schedules.runs_of"),
    Route("GET", "/schedules/{id:path}/summary", "schedules.summary"),
    Route("GET", "/schedules/{id:path}", "schedules.show"),
    Route("PUT", "/schedules/{id:path}", "schedules.update"),
    Route("DELETE", "/schedules/{id:path}", "schedules.delete", 204),
    Route("GET", "/runs", "schedules.runs"),
    Route("GET", "/calendars", "schedules.calendars"),
    Route("PUT", "/calendars/{name:path}", "schedules.put_calendar"),
    Route("DELETE", "/calendars/{name:path}", "schedules.delete_calendar", 204),
    Route("GET", "/queues", "system.queues"),
    Route("POST", "/queues/{name:path}/pause", "gates.pause_queue"),
    Route("POST", "/queues/{name:path}/resume", "gates.resume_queue", 204),
    Route("GET", "/gates", "gates.list"),
    Route("POST", "/gates", "gates.pause", 201),
    Route("DELETE", "/gates/{id:path}", "gates.resume", 204),
    Route("GET", "/limits", "limits.list"),
    Route("GET", "/limits/{name:path}", "limits.show"),
    Route("PUT", "/limits/{name:path}", "limits.set"),
    Route("DELETE", "/limits/{name:path}", "limits.drop", 204),
    Route("GET", "/tasks", "system.tasks"),
    Route("GET", "/tenants", "tenants.list"),
    Route("GET", "/tenants/{name:path}", "tenants.show"),
    Route("PUT", "/tenants/{name:path}", "tenants.put"),
    Route("DELETE", "/tenants/{name:path}", "tenants.drop", 204),
    Route("GET", "/workers", "system.workers"),
    Route("GET", "/activity", "system.activity"),
    Route("GET", "/audit", "system.audit"),
    Route("GET", "/audit/verify", "system.verify_audit"),
    Route("GET", "/doctor", "system.doctor"),
    Route("GET", "/settings", "system.settings"),
    Route("GET", "/tokens", "access.tokens"),
    Route("POST", "/tokens", "access.create_token", 201),
    Route("POST", "/tokens/{id}/rotate", "access.rotate_token"),
    Route("DELETE", "/tokens/{id}", "access.revoke_token", 204),
    Route("GET", "/sessions", "access.sessions"),
    Route("DELETE", "/sessions", "access.end_sessions"),
    Route("DELETE", "/sessions/{id}", "access.end_session", 204),
    Route("GET", "/users", "access.users"),
    Route("PUT", "/users/{name}/password", "access.set_password"),
    Route("PUT", "/users/{name}", "access.put_user"),
    Route("DELETE", "/users/{name}", "access.delete_user", 204),
)
BY_ACTION: dict[str, Route] = {route.action: route for route in ROUTES}
