"""The OpenAPI document, generated from the routes and their types. Holds no second description of them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from ..core.access import PERMISSIONS
from ..operate.requests import ActionRequest
from ..version import __version__
from .events import EventsRequest
from .problems import MEDIA_TYPE, ProblemView
from .responses import encode
from .routes import PREFIX, ROUTES, Route
from .sign_in import SessionView, SignInRequest

REF = "#/components/schemas/{name}"
SIGNED_IN: list[dict[str, list[str]]] = [{"bearer": []}, {"session": []}]
STATUSES = {
    200: "Done.",
    201: "Created.",
    204: "Done; no content.",
    400: "The id in the path is invalid.",
    401: "Not authenticated, or the token is invalid.",
    403: "The caller's role or tenant does not allow this, or the request comes from another site.",
    404: "Not found, or it belongs to another tenant.",
    405: "The path does not accept this method.",
    408: "The body did not arrive in time.",
    409: "Not allowed in the current state.",
    413: "The body is too long.",
    414: "The address is too long.",
    415: "The body is not JSON.",
    421: "Unknown host name.",
    422: "A field of the request is invalid.",
    429: "Too many requests, see Retry-After; or a quota of the tenant is used up (quota_exceeded).",
    431: "The headers are too long.",
    500: "Internal error.",
    503: "The store is unavailable, or the server has too much to do; see Retry-After.",
}
OPEN = (405, 414, 421, 429, 431, 500, 503)
ALWAYS = (401, 403, *OPEN)
WITH_BODY = (408, 413, 415)


@lru_cache(maxsize=8)
def encoded(base: str) -> bytes:
    """The document as JSON. Building it takes a tenth of a second."""
    return encode(document(base))


def document(base: str) -> dict[str, Any]:
    """The whole API, as served under ``base``."""
    types = [ProblemView, SignInRequest, SessionView]
    for route in ROUTES:
        types += [kind for kind in (route.signature.request, route.signature.view) if kind is not None]
    _, schemas = msgspec.json.schema_components([*types, EventsRequest], ref_template=REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        path = PREFIX + route.path.replace(":path}", "}")
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rota",
            "version": __version__,
            "description": "Observe and operate jobs, schedules, queues and workers.",
        },
        "servers": [{"url": base or "/"}],
        "paths": {**paths, **_others(schemas)},
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API token: `rota token create`.",
                },
                "session": {"type": "apiKey", "in": "cookie", "name": "__Host-rota"},
            },
        },
        "x-permissions": {
            name: {"role": rule.role, "shared": rule.shared} for name, rule in PERMISSIONS.items()
        },
    }


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    request, view = route.signature.request, route.signature.view
    statuses = [*ALWAYS, 404, 422]
    operation: dict[str, Any] = {
        "operationId": route.action,
        "tags": [route.path.split("/")[1]],
        "summary": route.help.partition("\n")[0],
        "description": route.help,
        "security": SIGNED_IN,
        "x-permission": route.permission,
        "parameters": [_path_parameter(name, route) for name in route.signature.path],
    }
    if route.signature.path:
        statuses.append(400)
    if route.has_body:
        statuses += [409, *WITH_BODY]
        if request is not None:
            is_required = any(field.required for field in msgspec.structs.fields(request))
            operation["requestBody"] = {"required": is_required, "content": _json(request)}
    elif request is not None:
        operation["parameters"] += _query(request, schemas)
    if route.method == "DELETE":
        statuses.append(409)
    if request is not None and "idempotency_key" in request.__struct_fields__:
        operation["parameters"].append(_idempotency_key())
    operation["responses"] = {str(route.status): _success(route.status, view), **_problems(*statuses)}
    return operation


def _path_parameter(name: str, route: Route) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
    if name == "id" and route.path.startswith("/jobs/"):
        schema = {"type": "string", "format": "uuid"}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(request: type[ActionRequest], schemas: dict[str, Any]) -> list[dict[str, Any]]:
    """One parameter per field of the request; lists are written with commas."""
    schema = schemas[request.__name__]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": described,
            **({"style": "form", "explode": False} if described.get("type") == "array" else {}),
        }
        for name, described in schema["properties"].items()
    ]


def _idempotency_key() -> dict[str, Any]:
    return {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "Requests with the same key create one job, however often they are sent.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    }


def _json(kind: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=REF)
    return {"application/json": {"schema": schema}}


def _success(status: int, view: Any) -> dict[str, Any]:
    response: dict[str, Any] = {"description": STATUSES[status], "headers": REQUEST_ID}
    return response if status == 204 or view is None else {**response, "content": _json(view)}


def _problems(*statuses: int) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": REF.format(name="ProblemView")}}}
    return {
        str(status): {"description": STATUSES[status], "headers": REQUEST_ID, "content": content}
        for status in sorted(set(statuses))
    }


REQUEST_ID = {
    "X-Request-Id": {"schema": {"type": "string"}, "description": "Also in the server log and the audit log."}
}


# --- paths that are not admin actions ------------------------------------------------------------


def _others(schemas: dict[str, Any]) -> dict[str, Any]:
    def operation(summary: str, media: str, schema: Any, permission: str | None = None) -> dict[str, Any]:
        name = re.sub(r"\W+", "_", summary.lower()).strip("_")
        success = {
            "description": STATUSES[200],
            "headers": REQUEST_ID,
            "content": {media: {"schema": schema}},
        }
        statuses = ALWAYS if permission else OPEN
        return {
            "operationId": f"server.{name}",
            "tags": ["server"],
            "summary": summary,
            "security": SIGNED_IN if permission else [],
            **({"x-permission": permission} if permission else {}),
            "responses": {"200": success, **_problems(*statuses)},
        }

    text, anything = {"type": "string"}, {"type": "object"}
    session = {"$ref": REF.format(name="SessionView")}
    events = operation("Stream events", "text/event-stream", text, "read")
    events["parameters"] = _query(EventsRequest, schemas)
    events["responses"].update(_problems(422, 429))
    events["description"] = EVENTS
    login = operation("Sign in", "application/json", session)
    login["requestBody"] = {"required": True, "content": _json(SignInRequest)}
    login["responses"].update(_problems(401, 403, 422, 429, *WITH_BODY))
    whoami = operation("Show who is signed in", "application/json", session)
    whoami["responses"].update(_problems(401))
    logout = operation("Sign out", "application/json", anything, "me")
    logout["responses"] = {"204": _success(204, None), **_problems(*ALWAYS)}
    ready = operation("Check readiness", "application/json", anything)
    ready["responses"]["503"] = {**ready["responses"]["200"], "description": "Not ready."}
    return {
        f"{PREFIX}/events": {"get": events},
        "/api/session": {"get": whoami, "post": login, "delete": logout},
        "/api/openapi.json": {"get": operation("Get this document", "application/json", anything, "read")},
        "/healthz": {"get": operation("Check liveness", "application/json", anything)},
        "/readyz": {"get": ready},
        "/metrics": {"get": operation("Export Prometheus metrics", "text/plain", text, "read.shared")},
    }


EVENTS = """Server-sent events: `stats`, `job` (payload and output left out), `gate`,
`schedule`, `worker`, `audit`, each with its view, or `{"id": …, "gone": true}`; `reset` when
events were missed and everything must be read again. Resume with the header Last-Event-ID."""
