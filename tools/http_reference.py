"""Writes docs/reference/http.md from the OpenAPI document: ``make generate``. A test holds the page to it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rota.admin.openapi import STATUSES, document

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "http.md"
METHODS = ("get", "post", "put", "delete")
INTRODUCTION = """# HTTP

`rota serve` and `rota up` serve this beside the dashboard; it can be mounted in any ASGI application, under any prefix: see [secure it](../howto/secure.md). The OpenAPI document is at `/api/openapi.json`, a page to try things out at `/api/docs`; neither loads anything from elsewhere. This page is written from that document.

**Signing in.** A bearer token (`Authorization: Bearer rota_…`, made by `rota token create`), or the dashboard's session.

**Lists** are `{"items": […], "next": cursor or null}`: give `next` as `cursor` for the following page. Lists in a query are written with commas. Instants are ISO 8601 with a zone.

**Errors** are `application/problem+json` with `code`, `title`, `detail`, `status`, `request_id`; `field` where one field is at fault, `state` where the state of the thing forbids it. Every answer carries `X-Request-Id`, which is also in the log and in the audit log.

**Permissions.** `read`, `operate`, `admin` are for the roles viewer, operator, admin; `audit` is for operators. With `.shared` they concern what all tenants share, and need a token without a tenant. Another tenant's object is a 404.
"""


def page() -> str:
    told = document("")
    schemas = told["components"]["schemas"]
    parts = [INTRODUCTION, _statuses(), "## Requests\n"]
    for tag in _tags(told):
        parts.append(f"### {tag}\n")
        parts += [_operation(method, path, one, schemas) for method, path, one in _of(told, tag)]
    parts.append("## Views\n")
    parts += [_view(name, schemas) for name in sorted(schemas) if _is_view(name, schemas)]
    return "\n".join(parts).rstrip() + "\n"


def _statuses() -> str:
    rows = "\n".join(f"| {status} | {text} |" for status, text in sorted(STATUSES.items()))
    return f"## Answers\n\n| Status | Meaning |\n|---|---|\n{rows}\n"


def _tags(told: dict[str, Any]) -> list[str]:
    tags = [one["tags"][0] for methods in told["paths"].values() for one in methods.values()]
    return list(dict.fromkeys(tags))


def _of(told: dict[str, Any], tag: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, methods[method])
        for path, methods in told["paths"].items()
        for method in METHODS
        if method in methods and methods[method]["tags"][0] == tag
    ]


def _operation(method: str, path: str, one: dict[str, Any], schemas: dict[str, Any]) -> str:
    lines = [f"**`{method.upper()} {path}`** {one['summary']}"]
    permission = one.get("x-permission")
    facts = [f"Needs `{permission}`." if permission else "Open to all."]
    facts.append(f"Answers {_answer(one)}.")
    lines.append(" ".join(facts))
    given = [(p["name"], p["schema"], p["required"]) for p in one.get("parameters", ()) if p["in"] != "path"]
    body = one.get("requestBody")
    if body is not None:
        name = body["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        needed = schemas[name].get("required", ())
        given += [(field, schema, field in needed) for field, schema in schemas[name]["properties"].items()]
    if given:
        said = ", ".join(
            f"`{name}`{'' if required else '?'} {_type(schema)}" for name, schema, required in given
        )
        lines.append(f"{'Body' if body is not None else 'Query'}: {said}.")
    return "\n\n".join(lines) + "\n"


def _answer(one: dict[str, Any]) -> str:
    status = next(code for code in one["responses"] if code < "300")
    content = one["responses"][status].get("content")
    if content is None:
        return f"{status} without a body"
    media, told = next(iter(content.items()))
    return (
        f"{status} with {_type(told['schema'])}" if media == "application/json" else f"{status} as `{media}`"
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
    """Requests stand with their routes, pages are lists of views."""
    asks = ("Ask", "Edit", "Make", "Put")
    return (
        not name.startswith("Page_")
        and not name.endswith(asks)
        and name not in ("JobMatch", "WhichTenant", "State")
        and "properties" in schemas[name]
    )


def _view(name: str, schemas: dict[str, Any]) -> str:
    schema = schemas[name]
    first = str(schema.get("description", "")).partition("\n")[0]
    fields = ", ".join(f"`{field}` {_type(told)}" for field, told in schema["properties"].items())
    return f"**`{name}`** {first}\n\n{fields}\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text() != page())
    PAGE.write_text(page())
