"""Write what the dashboard's scripts know of the server: ``types.d.ts`` and ``choices.js``.

``types.d.ts`` holds the shapes of the API, from its OpenAPI document, for ``tsc --checkJs``. ``choices.js`` holds
the values of enumerations, from the types of the server. Neither is ever edited by hand.

python tools/dashboard_types.py            write both
python tools/dashboard_types.py --check    fail if one of them is out of date
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from rota import model
from rota.admin.openapi import document
from rota.core import access
from rota.core.jobs import why_reasons

DASHBOARD = Path(__file__).parent.parent / "src/rota/admin/dashboard"
BY = "Written by tools/dashboard_types.py; do not edit."
PLAIN = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}
API = "/api/admin"
WIDTH = 120

# --- shapes ----------------------------------------------------------------------------------------


def types() -> str:
    found = document("")
    schemas = found["components"]["schemas"]
    head = f"// Shapes of the admin API. {BY}\n"
    shapes = (_declared(name, schemas[name]) for name in sorted(schemas))
    answers = (_answers(method, found["paths"]) for method in ("get", "post", "put"))
    return head + "".join([*shapes, *answers])


def _declared(name: str, schema: dict[str, Any]) -> str:
    if schema.get("type") != "object" or "properties" not in schema:
        return f"\nexport type {_name(name)} = {_type(schema)};\n"
    required = set(schema.get("required", ()))
    fields = [
        f"  {field}{'' if field in required else '?'}: {_type(kind)};"
        for field, kind in schema["properties"].items()
    ]
    return "\n".join(["", f"export interface {_name(name)} {{", *fields, "}", ""])


def _answers(method: str, paths: dict[str, Any]) -> str:
    """What a method answers, by the path below the API: a literal, or a template with its parameters."""
    found = {
        path.removeprefix(API): _answer(methods[method])
        for path, methods in paths.items()
        if path.startswith(f"{API}/") and method in methods
    }
    lines = [f"  P extends {_pattern(path)} ? {found[path]} :" for path in sorted(found, key=_specific_first)]
    return "\n".join(
        ["", f"export type {method.title()}Response<P extends string> =", *lines, "  unknown;", ""]
    )


def _answer(operation: dict[str, Any]) -> str:
    done = next(one for status, one in operation["responses"].items() if status.startswith("2"))
    content = next(iter(done.get("content", {}).values()), None)
    return _type(content["schema"]) if content else "null"


def _pattern(path: str) -> str:
    pattern = re.sub(r"\{\w+\}", "${string}", path)
    return json.dumps(path) if pattern == path else f"`{pattern}`"


def _specific_first(path: str) -> tuple[int, int, str]:
    """A parameter matches anything, slashes too: literals come first, then the longest."""
    return path.count("{"), -path.count("/"), path


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _name(schema["$ref"].rsplit("/", 1)[1])
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(map(_type, options)))
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    return _of_kind(schema)


def _of_kind(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_of_kind({**schema, "type": one}) for one in kind)
    if kind == "array":
        return _array(schema)
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
    return PLAIN.get(kind, "unknown") if isinstance(kind, str) else "unknown"


def _array(schema: dict[str, Any]) -> str:
    if fixed := schema.get("prefixItems"):
        return f"[{', '.join(map(_type, fixed))}]"
    item = _type(schema["items"]) if isinstance(schema.get("items"), dict) else "unknown"
    return f"({item})[]" if " | " in item else f"{item}[]"


def _name(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")


# --- choices ---------------------------------------------------------------------------------------

CHOICES: dict[str, tuple[str, Iterable[str]]] = {
    "JOB_STATES": ("JobState", model.State),
    "FINAL_STATES": ("FinalState", [one for one in model.State if one in model.FINAL]),
    "JOB_ORIGINS": ("JobOrigin", get_args(model.Origin)),
    "ATTEMPT_OUTCOMES": ("AttemptOutcome", get_args(model.AttemptOutcome)),
    "WHY_CODES": ("WhyCode", get_args(why_reasons.Code)),
    "MISSED": ("Missed", get_args(model.Missed)),
    "OVERLAP": ("Overlap", get_args(model.Overlap)),
    "CALENDAR_MODES": ("CalendarMode", get_args(model.CalendarMode)),
    "SCHEDULE_SOURCES": ("ScheduleSource", get_args(model.Source)),
    "GATE_SCOPES": ("GateScope", get_args(model.Scope)),
    "PERIODS": ("BudgetPeriod", get_args(model.Period)),
    "ROLES": ("Role", get_args(model.Role)),
    "PERMISSIONS": ("Permission", access.PERMISSIONS),
    "AUDIT_RESULTS": ("AuditResult", get_args(model.AuditResult)),
    "FINDING_LEVELS": ("FindingLevel", get_args(model.Level)),
}


def choices() -> str:
    head = f"// @ts-check\n// Values of the server's enumerations, in its order. {BY}\n"
    return head + "".join(f"\n{line}" for name in CHOICES for line in _choice(name))


def _choice(name: str) -> Iterator[str]:
    kind, values = CHOICES[name]
    texts = [json.dumps(str(value)) for value in values]
    line = f"export const {name} = /** @type {{const}} */ ([{', '.join(texts)}]);"
    if len(line) > WIDTH:
        line = "\n".join([line[: line.index("[") + 1], *(f"  {text}," for text in texts), "]);"])
    yield f"{line}"
    yield f"/** @typedef {{(typeof {name})[number]}} {kind} */\n"


WRITTEN = {"types.d.ts": types, "choices.js": choices}


def main() -> int:
    made = {DASHBOARD / name: text() for name, text in WRITTEN.items()}
    if "--check" not in sys.argv:
        for path, text in made.items():
            path.write_text(text)
        return 0
    stale = [path.name for path, text in made.items() if not path.exists() or path.read_text() != text]
    for name in stale:
        print(f"{name} is out of date: run python tools/dashboard_types.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
