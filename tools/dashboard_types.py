"""Write the dashboard's ``types.d.ts`` from the OpenAPI document: the shapes of the API, for ``tsc --checkJs``.

python tools/dashboard_types.py            write it
python tools/dashboard_types.py --check    say whether it is current
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from rota.admin.openapi import document

TARGET = Path(__file__).parent.parent / "src/rota/admin/dashboard/types.d.ts"
HEAD = "// Shapes of the admin API. Written by tools/dashboard_types.py; do not edit.\n"
PLAIN = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def text() -> str:
    schemas = document("")["components"]["schemas"]
    return HEAD + "".join(_declared(name, schemas[name]) for name in sorted(schemas))


def _declared(name: str, schema: dict[str, Any]) -> str:
    if schema.get("type") != "object" or "properties" not in schema:
        return f"\nexport type {_name(name)} = {_type(schema)};\n"
    required = set(schema.get("required", ()))
    fields = [
        f"  {field}{'' if field in required else '?'}: {_type(kind)};"
        for field, kind in schema["properties"].items()
    ]
    return "\n".join(["", f"export interface {_name(name)} {{", *fields, "}", ""])


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
        item = _type(schema["items"]) if isinstance(schema.get("items"), dict) else "any"
        return f"({item})[]" if " | " in item else f"{item}[]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'any'}>"
    return PLAIN.get(kind, "any") if isinstance(kind, str) else "any"


def _name(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")


def main() -> int:
    made = text()
    if "--check" not in sys.argv:
        TARGET.write_text(made)
        return 0
    if TARGET.read_text() == made:
        return 0
    print(f"{TARGET.name} is out of date: run python tools/dashboard_types.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
