"""Write docs/reference/http.md from the OpenAPI document: ``make papers``. A test checks that it is current."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rota.admin.openapi import STATUSES, document

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "http.md"
METHODS = ("get", "post", "put", "delete")
INTRODUCTION = """# HTTP API

`rota serve` and `rota up` serve the API beside the dashboard. You can also mount it in any ASGI application, under any prefix: see [secure it](../howto/secure.md). The OpenAPI document is at `/api/openapi.json`, and a page to try requests at `/api/docs`; neither loads anything from other sites. This page is generated from that document.

**Authentication.** Send an API token (`Authorization: Bearer rota_…`, created by `rota token create`), or use the dashboard's session.

**Lists** are `{"items": […], "next": cursor or null}`: send `next` as `cursor` for the next page. Write lists in a query with commas. Times are ISO 8601 with a time zone.

**Errors** are `application/problem+json` with `code`, `title`, `detail`, `status`, `request_id`; `field` if one field is invalid, `state` if the current state does not allow the action. Every response carries `X-Request-Id`, which is also in the server log and the audit log.

**Permissions.** `read`, `operate` and `admin` require the role viewer, operator or admin; `audit` requires operator. Those with `.shared` cover what all tenants share and require a token without a tenant. Objects of other tenants return 404.
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
    return "\n".join(parts).rstrip() + "\n"


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
    facts = [f"Requires `{permission}`." if permission else "Open to all."]
    facts.append(f"Returns {_response(one)}.")
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


def _response(one: dict[str, Any]) -> str:
    status = next(code for code in one["responses"] if code < "300")
    content = one["responses"][status].get("content")
    if content is None:
        return f"{status} without a body"
    media, described = next(iter(content.items()))
    return (
        f"{status} with {_type(described['schema'])}"
        if media == "application/json"
        else f"{status} as `{media}`"
    )


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
    """Requests are described with their routes, pages are lists of views."""
    return (
        not name.startswith("Page_")
        and not name.endswith("Request")
        and name not in ("JobSelector", "State")
        and "properties" in schemas[name]
    )


def _view(name: str, schemas: dict[str, Any]) -> str:
    schema = schemas[name]
    first = str(schema.get("description", "")).partition("\n")[0]
    fields = ", ".join(f"`{field}` {_type(shown)}" for field, shown in schema["properties"].items())
    return f"**`{name}`** {first}\n\n{fields}\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text() != page())
    PAGE.write_text(page())
