"""``/limits`` over HTTP: set, list, show and drop; there and for ``/tenants``, 422 with the field."""

from __future__ import annotations

from urllib.parse import quote

from sites import API, Site


def test_limits_are_set_listed_shown_and_dropped(each_site: Site) -> None:
    token = each_site.token()
    name = quote("key:a/b:*", safe="")
    put = each_site.ask("PUT", f"{API}/limits/{name}", {"running": 2, "rate": "100/m"}, token=token)
    assert (put.status, put.json["name"], put.json["scope"]) == (200, "key:a/b:*", "family")
    (listed,) = each_site.get(f"{API}/limits", token).json["items"]
    assert (listed["most"], listed["rate"], listed["burst"], listed["source"]) == (2, "100/m", 1, "run time")
    one = each_site.get(f"{API}/limits/{quote('key:a/b:7', safe='')}", token).json
    assert (one["rule"], one["running"], one["tokens"], one["holders"]) == ("key:a/b:*", 0, 1.0, [])
    assert each_site.ask("DELETE", f"{API}/limits/{name}", token=token).status == 204
    assert each_site.get(f"{API}/limits", token).json["items"] == []
    assert each_site.get(f"{API}/limits/{name}", token).code == "not_found"


def test_a_limit_that_makes_no_sense_is_422_with_the_field(site: Site) -> None:
    token = site.token()
    cases = [
        ("queue:mail", {"running": 0}, "running"),
        ("queue:mail", {"running": "many"}, "running"),
        ("queue:mail", {"rate": "fast"}, "rate"),
        ("queue:mail", {"rate": "0/s"}, "rate"),
        ("queue:mail", {"burst": 3}, "burst"),
        ("queue:mail", {"running": 1, "strict": True}, "strict"),
        ("queue:mail", {"runing": 1}, "runing"),
        ("queue:mail", {}, "running"),
        ("fax:mail", {"running": 1}, "name"),
        ("key:" + "x" * 201, {"running": 1}, "name"),
    ]
    for name, body, field in cases:
        answer = site.ask("PUT", f"{API}/limits/{quote(name, safe='')}", body, token=token)
        assert (answer.status, answer.json.get("field")) == (422, field), answer.body
    assert site.get(f"{API}/limits/fax", token).json["field"] == "name"
    assert site.get(f"{API}/limits", token).json["items"] == []


def test_what_makes_no_sense_for_a_tenant_is_422_with_the_field(site: Site) -> None:
    token = site.token()
    cases = [
        ("acme", {"weight": -1}, "weight"),
        ("acme", {"weight": "heavy"}, "weight"),
        ("acme", {"budget": "50"}, "budget"),
        ("acme", {"budget": 50}, "budget"),
        ("acme", {"budget_alert": 0.8}, "budget_alert"),
        ("acme", {"waiting": 1.5}, "waiting"),
        ("acme", {"wieght": 1}, "wieght"),
        ("x" * 201, {"weight": 1}, "name"),
    ]
    for name, body, field in cases:
        answer = site.ask("PUT", f"{API}/tenants/{name}", body, token=token)
        assert (answer.status, answer.json.get("field")) == (422, field), answer.body
    assert site.get(f"{API}/tenants", token).json["items"] == []


def test_what_a_job_counts_under_is_422_with_the_field_if_it_makes_no_sense(site: Site) -> None:
    token = site.token()
    assert site.ask("PUT", f"{API}/limits/key:ai", {"rate": "2/s"}, token=token).status == 200
    cases = [
        ({"concurrency_key": "ai", "units": 3}, "units"),
        ({"units": 0}, "units"),
        ({"units": "many"}, "units"),
        ({"price": -1}, "price"),
        ({"concurrency_key": "{nope}"}, "concurrency_key"),
        ({"concurrency_key": "x" * 201}, "concurrency_key"),
        ({"concurrency_key": "a:{id}", "payload": {"id": "x" * 200}}, "concurrency_key"),
    ]
    for given, field in cases:
        answer = site.post(f"{API}/jobs", {"task": "work", **given}, token)
        assert (answer.status, answer.json.get("field")) == (422, field), answer.body
    job = site.post(f"{API}/jobs", {"task": "work", "concurrency_key": "ai", "units": 2, "price": 1.5}, token)
    assert (job.status, job.json["concurrency_key"], job.json["units"], job.json["price"]) == (
        201,
        "ai",
        2,
        1.5,
    )
