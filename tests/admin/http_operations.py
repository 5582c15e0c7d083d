"""Every operation of the OpenAPI document, as a call that reaches its action."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sites import Site

from rota.admin import openapi

OPEN = {("get", "/healthz"), ("get", "/readyz"), ("get", "/api/session"), ("post", "/api/session")}
NOBODY = "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60"
BODIES: dict[str, Any] = {
    "jobs.enqueue": {"task": "work"},
    "jobs.move": {"now": True},
    "jobs.bulk": {"action": "retry", "ids": [NOBODY], "dry_run": True},
    "schedules.create": {"name": "made", "task": "work", "every": "1h"},
    "schedules.validate": {"cron": "* * * * *"},
    "schedules.backfill": {"since": "2030-01-01T00:00:00Z", "until": "2030-01-02T00:00:00Z"},
    "schedules.put_calendar": {"dates": ["2030-12-25"]},
    "gates.pause": {"scope": "schedule", "name": "nightly"},
    "access.create_token": {"role": "viewer"},
    "access.set_password": {"password": "another long enough password"},
    "access.put_user": {"password": "a long enough password", "role": "viewer"},
}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in openapi.document("")["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def concrete(path: str) -> str:
    return path.replace("{id}", NOBODY).replace("{name}", "mail")


def body_of(operation: dict[str, Any]) -> Any:
    return BODIES.get(operation["operationId"], {} if "requestBody" in operation else None)


def call(site: Site, method: str, path: str, operation: dict[str, Any], token: str | None) -> int:
    return site.ask(method.upper(), concrete(path), body_of(operation), token=token).status
