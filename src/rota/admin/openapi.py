"""The OpenAPI document, read off the routes and their types: it cannot say anything that is not so."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..core.access import PERMISSIONS
from ..operate.requests import ActionRequest
from ..version import __version__
from .events import EventsRequest
from .problems import MEDIA_TYPE, ProblemView
from .routes import PREFIX, ROUTES, Route
from .sign_in import SessionView, SignInRequest

REF = "#/components/schemas/{name}"
SIGNED_IN: list[dict[str, list[str]]] = [{"bearer": []}, {"session": []}]
STATUSES = {
    200: "Done.",
    201: "Made.",
    204: "Done; there is nothing to say.",
    400: "The id in the path is not one.",
    401: "Nobody is signed in, or the token is not good.",
    403: "The caller's role or tenant does not reach so far, or the request is not from our own page.",
    404: "There is no such thing, or it is another tenant's.",
    405: "The path does not take this method.",
    408: "The body did not arrive in time.",
    409: "The state of the thing forbids it.",
    413: "The body is too long.",
    414: "The address is too long.",
    415: "The body is not JSON.",
    421: "The server is not called by this name.",
    422: "The request has a field that cannot be used.",
    429: "Too much, too often.",
    431: "The headers are too long.",
    500: "Something went wrong inside.",
    503: "The store cannot answer now.",
}
ANYBODY = (405, 414, 421, 431, 500, 503)
ALWAYS = (401, 403, *ANYBODY)
WITH_BODY = (408, 413, 415)


def document(base: str) -> dict[str, Any]:
    """The whole API, as served under ``base``."""
    types = [ProblemView, SignInRequest, SessionView]
    for route in ROUTES:
        types += [kind for kind in (route.signature.ask, route.signature.answer) if kind is not None]
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
            "description": "See and steer jobs, schedules, queues and workers.",
        },
        "servers": [{"url": base or "/"}],
        "paths": {**paths, **_beside(schemas)},
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token: `rota token create`.",
                },
                "session": {"type": "apiKey", "in": "cookie", "name": "__Host-rota"},
            },
        },
        "x-permissions": {
            name: {"role": rule.role, "shared": rule.shared} for name, rule in PERMISSIONS.items()
        },
    }


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    ask, answer = route.signature.ask, route.signature.answer
    statuses = [*ALWAYS, 404, 422]
    made: dict[str, Any] = {
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
        if ask is not None:
            is_needed = any(field.required for field in msgspec.structs.fields(ask))
            made["requestBody"] = {"required": is_needed, "content": _json(ask)}
    elif ask is not None:
        made["parameters"] += _query(ask, schemas)
    if route.method == "DELETE":
        statuses.append(409)
    if ask is not None and "idempotency_key" in ask.__struct_fields__:
        made["parameters"].append(_idempotency_key())
    made["responses"] = {str(route.status): _good(route.status, answer), **_problems(*statuses)}
    return made


def _path_parameter(name: str, route: Route) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
    if name == "id" and route.path.startswith("/jobs/"):
        schema = {"type": "string", "format": "uuid"}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(ask: type[ActionRequest], schemas: dict[str, Any]) -> list[dict[str, Any]]:
    """Each field of the request is a parameter; lists are written with commas."""
    schema = schemas[ask.__name__]
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
        "description": "Requests with the same key make one job, however often they are sent.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    }


def _json(kind: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=REF)
    return {"application/json": {"schema": schema}}


def _good(status: int, answer: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"description": STATUSES[status], "headers": REQUEST_ID}
    return told if status == 204 or answer is None else {**told, "content": _json(answer)}


def _problems(*statuses: int) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": REF.format(name="ProblemView")}}}
    return {
        str(status): {"description": STATUSES[status], "headers": REQUEST_ID, "content": content}
        for status in sorted(set(statuses))
    }


REQUEST_ID = {
    "X-Request-Id": {"schema": {"type": "string"}, "description": "Also in the log and the audit log."}
}


# --- what is not an action of the desk -----------------------------------------------------------


def _beside(schemas: dict[str, Any]) -> dict[str, Any]:
    def told(summary: str, media: str, schema: Any, permission: str | None = None) -> dict[str, Any]:
        name = re.sub(r"\W+", "_", summary.lower()).strip("_")
        good = {"description": STATUSES[200], "headers": REQUEST_ID, "content": {media: {"schema": schema}}}
        statuses = ALWAYS if permission else ANYBODY
        return {
            "operationId": f"server.{name}",
            "tags": ["server"],
            "summary": summary,
            "security": SIGNED_IN if permission else [],
            **({"x-permission": permission} if permission else {}),
            "responses": {"200": good, **_problems(*statuses)},
        }

    text, anything = {"type": "string"}, {"type": "object"}
    session = {"$ref": REF.format(name="SessionView")}
    events = told("Listen to events", "text/event-stream", text, "read")
    events["parameters"] = _query(EventsRequest, schemas)
    events["responses"].update(_problems(422, 429))
    events["description"] = EVENTS
    login = told("Sign in", "application/json", session)
    login["requestBody"] = {"required": True, "content": _json(SignInRequest)}
    login["responses"].update(_problems(401, 403, 422, 429, *WITH_BODY))
    whoami = told("Who is signed in", "application/json", session)
    whoami["responses"].update(_problems(401))
    logout = told("Sign out", "application/json", anything, "read")
    logout["responses"] = {"204": _good(204, None), **_problems(*ALWAYS)}
    ready = told("Is it of use", "application/json", anything)
    ready["responses"]["503"] = {**ready["responses"]["200"], "description": "Not now."}
    return {
        f"{PREFIX}/events": {"get": events},
        "/api/session": {"get": whoami, "post": login, "delete": logout},
        "/api/openapi.json": {"get": told("This document", "application/json", anything, "read")},
        "/healthz": {"get": told("Is it alive", "application/json", anything)},
        "/readyz": {"get": ready},
        "/metrics": {"get": told("Measures", "text/plain", text, "read.shared")},
    }


EVENTS = """Server-sent events while the line is open: `stats`, `job` (payload and output left out), `gate`,
`schedule`, `worker`, `audit`, each with the view of the thing, or `{"id": …, "gone": true}`; `reset` when
events were missed and all must be read anew. Resume with the header Last-Event-ID."""
