"""Permissions over HTTP: every operation of the OpenAPI document, with every role and tenant."""

from __future__ import annotations

import msgspec
import pytest
from http_operations import BODIES, OPEN, call, operations
from sites import API, Site

from rota.admin.routes import ROUTES
from rota.core.access import PERMISSIONS, may
from rota.model import Actor

ROLES = ("producer", "viewer", "operator", "admin")


TENANTS = (None, "acme")


FINE = {200, 201, 204, 404, 409, 422}  # reached the action itself


def test_every_operation_declares_a_permission_or_is_open() -> None:
    for method, path, operation in operations():
        if (method, path) in OPEN:
            assert operation["security"] == [] and "x-permission" not in operation
        else:
            assert operation["security"] and operation["x-permission"] in PERMISSIONS, (method, path)


def test_every_route_of_the_table_is_in_the_document_with_its_types() -> None:
    documented = {operation["operationId"] for _, _, operation in operations()}
    assert {route.action for route in ROUTES} <= documented
    assert len(documented) == len(list(operations()))
    for route in ROUTES:
        assert route.permission in PERMISSIONS and route.help, route


def test_each_role_and_tenant_can_call_exactly_what_its_permissions_allow(each_site: Site) -> None:
    for role in ROLES:
        for tenant in TENANTS:
            token = each_site.token(role, tenant)
            actor = Actor(name="x", role=role, tenant=tenant)
            for method, path, operation in operations():
                if (method, path) in OPEN or path.endswith("/events"):
                    continue
                status = call(each_site, method, path, operation, token)
                if may(actor, operation["x-permission"]):
                    assert status in FINE, (role, tenant, method, path, status)
                else:
                    assert status == 403, (role, tenant, method, path, status)


def test_denied_action_is_in_the_audit_log(site: Site) -> None:
    assert site.post(f"{API}/jobs", {"task": "work"}, site.token("viewer")).status == 403
    (entry,) = site.get(f"{API}/audit?result=denied", site.token()).json["items"]
    assert (entry["action"], entry["role"], entry["via"], entry["address"]) == (
        "job.enqueue", "viewer", "http", "127.0.0.1",
    )  # fmt: skip
    assert entry["request_id"]


def test_no_actor_grants_more_than_it_has(site: Site) -> None:
    acme = site.token("admin", "acme")
    assert site.post(f"{API}/tokens", {"role": "admin", "tenant": "globex"}, acme).status == 404
    made = site.post(f"{API}/tokens", {"role": "admin"}, acme)
    assert (made.status, made.json["tenant"]) == (201, "acme")
    assert site.get(f"{API}/workers", made.json["token"]).status == 403


CANARY = "globexcanary"


@pytest.fixture
def two_tenants(each_site: Site) -> tuple[Site, dict[str, str]]:
    """Globex has a job, a schedule, a gate, a token and an audit entry, all marked; acme has none."""
    globex = each_site.token("admin", CANARY)
    job = each_site.post(
        f"{API}/jobs",
        {
            "task": f"{CANARY}.task",
            "queue": f"{CANARY}-queue",
            "key": f"{CANARY}-key",
            "payload": {"a": CANARY},
        },
        globex,
    ).json["id"]
    schedule = each_site.post(
        f"{API}/schedules", {"name": f"{CANARY}-nightly", "task": CANARY, "every": "1h"}, globex
    ).json["id"]
    assert each_site.post(f"{API}/gates", {"scope": "tenant", "name": CANARY}, globex).status == 201
    user = {"password": "a long enough password", "role": "viewer"}
    assert each_site.ask("PUT", f"{API}/users/user@{CANARY}", user, token=globex).status == 200
    return each_site, {"job": job, "schedule": schedule, "token": globex.split("_")[1]}


def test_no_get_route_shows_one_tenant_data_of_another(two_tenants: tuple[Site, dict[str, str]]) -> None:
    site, theirs = two_tenants
    acme = site.token("admin", "acme")
    marks = (CANARY, *theirs.values())
    for route in ROUTES:
        if route.method == "GET":
            for id in (theirs["job"], theirs["schedule"], f"{CANARY}-nightly"):
                answer = site.get(API + route.path.replace("{id}", id), acme)
                hidden = answer.body.decode().replace(id, "")
                assert not [mark for mark in marks if mark in hidden], (route, hidden)


def test_another_tenants_objects_are_404_for_every_verb(two_tenants: tuple[Site, dict[str, str]]) -> None:
    site, theirs = two_tenants
    acme = site.token("admin", "acme")
    ids = {"jobs": theirs["job"], "schedules": theirs["schedule"], "tokens": theirs["token"]}
    ids |= {"gates": f"tenant:{CANARY}"}
    for route in ROUTES:
        subject = route.path.split("/")[1]
        if "{id" in route.path and subject in ids:
            path = API + route.path.replace("{id:path}", "{id}").replace("{id}", ids[subject])
            answer = site.ask(route.method, path, BODIES.get(route.action), token=acme)
            assert answer.status == 404, (route, answer)
    for where in ("jobs?tenant=", "schedules?tenant=", "runs?tenant=", "audit?tenant=", "jobs/count?tenant="):
        assert site.get(f"{API}/{where}{CANARY}", acme).status == 404
    everything = {"action": "cancel", "ids": [theirs["job"]]}
    assert site.post(f"{API}/jobs/bulk", everything, acme).json["done"] == 0
    assert site.get(f"{API}/jobs/{theirs['job']}", site.token()).json["state"] == "queued"


def test_metrics_require_an_actor_for_all_tenants(two_tenants: tuple[Site, dict[str, str]]) -> None:
    site, _ = two_tenants
    assert site.get("/metrics", site.token("admin", "acme")).status == 403
    assert CANARY in site.get("/metrics", site.token("viewer")).body.decode()


def test_payloads_are_a_permission_of_their_own(site: Site) -> None:
    job = site.job(payload={"card": "4111"})
    seen = site.get(f"{API}/jobs/{job}", site.token("viewer", payloads=True)).json
    hidden = site.get(f"{API}/jobs/{job}", site.token("operator", payloads=False)).json
    assert seen["payload"] == {"card": "4111"}
    assert "4111" not in msgspec.json.encode(hidden).decode()


def test_secret_fields_are_masked_even_for_admins(site: Site) -> None:
    job = site.job(payload={"user": "ada", "password": "canary-secret"})
    shown = site.get(f"{API}/jobs/{job}", site.token())
    assert shown.json["payload"]["user"] == "ada" and b"canary-secret" not in shown.body
