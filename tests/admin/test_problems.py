"""Error responses: a stable code, and the field, state or job it is about."""

from __future__ import annotations

from typing import Any

import pytest
from http_operations import NOBODY
from sites import API, Answer, Site

from rota.operate import bulk
from rota.operate.bulk import BulkInterrupted


def test_each_kind_of_error_has_its_code_and_the_field_or_state(site: Site) -> None:
    token, job = site.token(), site.job(key="only-one")
    cases: list[tuple[Answer, int, str, dict[str, Any]]] = [
        (site.get(f"{API}/jobs/nonsense", token), 400, "bad_id", {"field": "id"}),
        (site.get(f"{API}/jobs/{NOBODY}", token), 404, "not_found", {}),
        (site.get(f"{API}/nothing", token), 404, "no_such_path", {}),
        (site.ask("PUT", f"{API}/jobs", {}, token=token), 405, "method_not_allowed", {}),
        (site.post(f"{API}/jobs/{job}/retry", None, token), 409, "illegal_move", {"state": "queued"}),
        (
            site.post(f"{API}/jobs", {"task": "w", "key": "only-one", "on_conflict": "raise"}, token),
            409, "duplicate_job", {"job": job},
        ),
        (site.post(f"{API}/jobs", {"task": "w", "delay": "x"}, token), 422, "bad_input", {"field": "delay"}),
        (site.post(f"{API}/jobs", {"payload": {}}, token), 422, "bad_input", {"field": "task"}),
        (site.post(f"{API}/jobs", {"task": "w", "nope": 1}, token), 422, "bad_input", {"field": "nope"}),
        (site.post(f"{API}/jobs", {"task": "w\0"}, token), 422, "bad_input", {"field": "task"}),
        (
            site.post(f"{API}/jobs", {"task": "w", "run_at": "2030-01-01T00:00:00"}, token),
            422, "bad_input", {"field": "run_at"},
        ),
        (
            site.post(f"{API}/schedules", {"name": "n", "task": "w", "cron": "61 * * * *"}, token),
            422, "bad_input", {"field": "cron"},
        ),
        (site.get(f"{API}/jobs?task=a&task=b", token), 422, "bad_input", {"field": "task"}),
        (site.get(f"{API}/jobs?since=0001-01-01T00:00:00Z", token), 422, "bad_input", {"field": "since"}),
    ]  # fmt: skip
    for answer, status, code, more in cases:
        problem = answer.json
        assert (answer.status, problem["status"], problem["code"]) == (status, status, code), problem
        assert {name: problem.get(name) for name in more} == more, problem
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert (
            problem["request_id"] == answer.headers["X-Request-Id"] and problem["title"] and problem["detail"]
        )


def test_wrong_method_is_405_with_the_allowed_ones(site: Site) -> None:
    allowed = site.ask("PATCH", f"{API}/schedules/x", token=site.token()).headers["Allow"]
    assert {one.strip() for one in allowed.split(",")} == {"GET", "HEAD", "PUT", "DELETE"}


def test_an_interrupted_bulk_step_tells_how_far_it_came(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(*given: object) -> None:
        raise BulkInterrupted(300)

    monkeypatch.setattr(bulk, "run_step", interrupted)
    answer = site.post(f"{API}/jobs/bulk", {"action": "retry", "filter": {}}, site.token())
    assert (answer.status, answer.code, answer.json["done"]) == (503, "interrupted", 300)
    assert answer.json["detail"] == "The store failed after 300 jobs: send the request again to continue."
    assert answer.headers["Retry-After"] == "5"


def test_a_quota_that_is_used_up_is_a_429_with_the_reason(each_site: Site) -> None:
    token = each_site.token()
    put = each_site.ask("PUT", f"{API}/tenants/acme", {"waiting": 0, "budget": "5.00/day"}, token=token)
    assert (put.status, put.json["quotas"][0]["most"], put.json["budget"]["cents"]) == (200, 0, 500.0)
    refused = each_site.post(f"{API}/jobs", {"task": "work", "tenant": "acme"}, token)
    assert (refused.status, refused.json["code"]) == (429, "quota_exceeded")
    assert "tenant 'acme' may have 0 waiting jobs" in refused.json["detail"]
    assert each_site.post(f"{API}/jobs", {"task": "work", "tenant": "other"}, token).status == 201
    own = each_site.token("admin", tenant="acme")
    assert each_site.get(f"{API}/tenants/acme", own).status == 200
    assert each_site.get(f"{API}/tenants/other", own).status == 404
    assert each_site.ask("PUT", f"{API}/tenants/acme", {"waiting": 9}, token=own).status == 403
    wrong = each_site.ask("PUT", f"{API}/tenants/acme", {"budget": "5.00"}, token=token)
    assert (wrong.status, wrong.json["field"]) == (422, "budget")
