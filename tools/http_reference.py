"""Writes docs/reference/http.md from the OpenAPI document: ``make generate``. A test holds the page to it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rota.admin.openapi import STATUSES, document
from rota.admin.routes import BY_ACTION, Route

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "http.md"
METHODS = ("get", "post", "put", "delete")
INTRODUCTION = """# HTTP API

Every route of the HTTP API, which `rota serve` and `rota up` serve together with the dashboard.

```sh
curl -H "Authorization: Bearer $ROTA_TOKEN" http://localhost:8765/api/admin/jobs?state=failed
```

The OpenAPI document is at `/api/openapi.json`, a page to try requests at `/api/docs`; neither loads anything from other hosts. You can mount the API in any ASGI application, under any prefix: see [secure the dashboard and API](../howto/secure.md#in-your-own-application). This page is generated from the OpenAPI document.

**Authentication.** An API token (`Authorization: Bearer rota_…`, created by `rota token create`), or the session of the dashboard.

**Lists** are `{"items": […], "next": cursor or null}`: pass `next` as `cursor` to get the following page. Separate the values of a list in a query with commas. Times are ISO 8601 with a time zone.

**Errors** are `application/problem+json` with `code`, `title`, `detail`, `status`, `request_id`; `field` if one field is invalid, `state` if the current state does not allow the action, `done` if a step of a bulk action was interrupted by the store. Every response has a header `X-Request-Id`, which is also in the log and in the audit log.

**Limits.** One token or session may have 8 requests under way (more wait a moment for their turn) and send 200 per second; an address four times as many. What exceeds that is a 429 with `Retry-After`. Fire times, previews and lists of tenants are bounded: `more`, `truncated` or `cut` say that something is left out. If such an answer took long, the same question is answered with it for up to five seconds, or until a change through this server. Settings and more: [secure the dashboard and API](../howto/secure.md#limits).

**In Python**, `operations` is [`app.operations()`](app.md#operations); the requests are in `rota.operate.requests` and have the fields of the query or body.

**Permissions.** `read`, `operate` and `admin` are for the roles viewer, operator and admin; `audit` is for operators, `enqueue` for operators and producers, `me` for all. Those with `.shared` cover what all tenants share, and need a token that is not limited to a tenant. Another tenant's object returns 404.
"""

SEE_ALSO = """## See also

[Secure the dashboard and API](../howto/secure.md) · [Command line](cli.md) · [Errors](errors.md)
"""


def page() -> str:
    api = document("")
    schemas = api["components"]["schemas"]
    parts = [INTRODUCTION, _statuses(), "## Requests\n"]
    for tag in _tags(api):
        parts.append(f"### {tag}\n")
        parts += [_operation(method, path, one, schemas) for method, path, one in _of(api, tag)]
    parts.append("## Views\n")
    parts += [_view(name, schemas) for name in sorted(schemas) if _is_view(name, schemas)]
    parts.append(SEE_ALSO)
    return "\n".join(parts)


def _statuses() -> str:
    rows = "\n".join(f"| {status} | {text} |" for status, text in sorted(STATUSES.items()))
    return f"## Responses\n\n| Status | Meaning |\n|---|---|\n{rows}\n"


def _tags(api: dict[str, Any]) -> list[str]:
    tags = [one["tags"][0] for methods in api["paths"].values() for one in methods.values()]
    return list(dict.fromkeys(tags))


def _of(api: dict[str, Any], tag: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, methods[method])
        for path, methods in api["paths"].items()
        for method in METHODS
        if method in methods and methods[method]["tags"][0] == tag
    ]


def _operation(method: str, path: str, one: dict[str, Any], schemas: dict[str, Any]) -> str:
    lines = [f"**`{method.upper()} {path}`** {one['summary']}"]
    permission = one.get("x-permission")
    facts = [f"Needs `{permission}`." if permission else "Open to all."]
    facts.append(f"Returns {_response(one)}.")
    if (route := BY_ACTION.get(one["operationId"])) is not None:
        facts.append(f"In Python: `{_call(route)}`.")
    lines.append(" ".join(facts))
    given = [(p["name"], p["schema"], p["required"]) for p in one.get("parameters", ()) if p["in"] != "path"]
    body = one.get("requestBody")
    if body is not None:
        name = body["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        needed = schemas[name].get("required", ())
        given += [(field, schema, field in needed) for field, schema in schemas[name]["properties"].items()]
    if given:
        fields = ", ".join(
            f"`{name}`{'' if required else '?'} {_type(schema)}" for name, schema, required in given
        )
        lines.append(f"{'Body' if body is not None else 'Query'}: {fields}.")
    return "\n\n".join(lines) + "\n"


def _call(route: Route) -> str:
    """The same action through ``app.operations()``; its request has the fields that follow."""
    signature = route.signature
    arguments = list(signature.path)
    if signature.request is not None:
        arguments.append(f"{signature.request.__name__}(…)")
    return f"await operations.{route.action}({', '.join(arguments)})"


def _response(one: dict[str, Any]) -> str:
    status = next(code for code in one["responses"] if code < "300")
    content = one["responses"][status].get("content")
    if content is None:
        return f"{status} without a body"
    media, body = next(iter(content.items()))
    if media == "application/json":
        return f"{status} with {_type(body['schema'])}"
    return f"{status} as `{media}`"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = str(schema["$ref"].rsplit("/", 1)[1])
        inner = name.removeprefix("Page_").removesuffix("_")
        return f"a page of `{inner}`" if name.startswith("Page_") else f"`{name}`"
    if "anyOf" in schema:
        kinds = [_type(one) for one in schema["anyOf"] if one != {"type": "null"}]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema:
        return " · ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}" if schema.get("items") else "list"
    return str(schema.get("format") or schema.get("type") or "any JSON")


def _is_view(name: str, schemas: dict[str, Any]) -> bool:
    """Requests are shown with their routes; pages are lists of views."""
    return (
        not name.startswith("Page_")
        and not name.endswith("Request")
        and name not in ("JobSelector", "State")
        and "properties" in schemas[name]
    )


def _view(name: str, schemas: dict[str, Any]) -> str:
    schema = schemas[name]
    first = str(schema.get("description", "")).partition("\n")[0]
    fields = ", ".join(f"`{field}` {_type(kind)}" for field, kind in schema["properties"].items())
    return f"**`{name}`** {first}\n\n{fields}\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text() != page())
    PAGE.write_text(page())
