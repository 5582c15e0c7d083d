"""``/limits`` over HTTP: set, list, show and drop, and 422 with the field for what makes no sense."""

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
