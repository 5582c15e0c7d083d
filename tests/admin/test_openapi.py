"""The OpenAPI document is accurate: whatever is sent, responses conform to it and are never 500."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from sites import API, Site

from rota.admin import openapi
from servers import Postgres

VERBS = frozenset(
    [
        "Backfill",
        "Cancel",
        "Change",
        "Check",
        "Count",
        "Create",
        "Delete",
        "End",
        "Disable",
        "Enable",
        "Explain",
        "Export",
        "Get",
        "Group",
        "List",
        "Pause",
        "Preview",
        "Resume",
        "Retry",
        "Replace",
        "Revoke",
        "Run",
        "Show",
        "Sign",
        "Stream",
        "Summarise",
        "Update",
    ]
)
EXAMPLES = 300 if os.environ.get("ROTA_LONG") else 8
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SCHEMA = schemathesis.openapi.from_dict(openapi.document(""))
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations() if not found.ok().path.endswith("/events")]


@pytest.fixture(scope="module")
def stocked(postgres_server: Postgres, migrated_template: str) -> Iterator[tuple[Site, str]]:
    """A site with data of every subject, and a token for it, on the strictest store."""
    site = Site(postgres_server.create_database("fuzzed", migrated_template))
    token = site.token()
    site.job(payload={"a": [1, {"b": None}]}, tags=("x",), key="k")
    site.job(tenant="acme", delay=60.0)
    site.user("ada", "a long enough password")
    rules: list[dict[str, Any]] = [{"every": "1h"}, {"cron": "0 8 * * 1-5", "timezone": "America/New_York"}]
    for number, rule in enumerate(rules):
        body = {"name": f"nightly{number}", "task": "work", **rule}
        assert site.post(f"{API}/schedules", body, token).status == 201
    assert site.post(f"{API}/gates", {"scope": "queue", "name": "mail"}, token).status == 201
    assert site.ask("PUT", f"{API}/calendars/feasts", {"dates": ["2030-12-25"]}, token=token).status == 200
    yield site, token
    site.close()
    postgres_server.drop_database("fuzzed")


def cases() -> Iterator[Any]:
    """Each operation with valid values, and with invalid ones where it has parameters."""
    for one in OPERATIONS:
        takes = any(len(list(part)) for part in (one.path_parameters, one.query, one.headers, one.body))
        for mode in GenerationMode if takes else (GenerationMode.POSITIVE,):
            yield pytest.param(one, mode, id=f"{one.method.upper()} {one.path}-{mode.value}")


@pytest.mark.parametrize(("operation", "mode"), list(cases()))
def test_every_response_conforms_to_the_document(
    operation: Any, mode: GenerationMode, stocked: tuple[Site, str]
) -> None:
    site, token = stocked

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=not os.environ.get("ROTA_LONG"),
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def holds(case: Any) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        case.call_and_validate(base_url=site.server.url, headers=headers, checks=CHECKS)

    holds()


def test_hostile_strings_in_every_parameter_never_cause_500(stocked: tuple[Site, str]) -> None:
    site, token = stocked
    hostile = ("%00", "%ff", "..%2f", "'%20OR%201=1--", "9" * 30)
    for operation in OPERATIONS:
        if operation.method.upper() != "GET":
            continue
        for text in hostile:
            path = operation.path.replace("{id}", text).replace("{name}", text)
            names = [one.name for one in operation.query]
            for query in ["", *(f"?{name}={text}" for name in names)]:
                answer = site.get(path + query, token)
                assert answer.status < 500 or path == "/readyz", (path, query, answer)


def test_document_names_its_server(site: Site) -> None:
    document = site.get("/api/openapi.json", site.token()).json
    assert document["openapi"] == "3.1.0" and document["servers"] == [{"url": "/"}]
    assert document["info"]["title"] == "rota"


def test_every_summary_is_an_imperative_sentence() -> None:
    for path, methods in openapi.document("")["paths"].items():
        for operation in methods.values():
            verb = operation["summary"].split()[0].rstrip(":,.")
            assert verb in VERBS, (path, operation["summary"])
