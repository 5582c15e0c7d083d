"""``Idempotency-Key``: one job, however often and from however many clients it is requested."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec
from sites import API, Site


def test_concurrent_requests_with_one_key_create_one_job(each_site: Site) -> None:
    token = each_site.token()
    body = {"task": "charge", "payload": {"order": 7}}

    def send(_: int) -> str:
        answer = each_site.post(f"{API}/jobs", body, token, headers={"Idempotency-Key": "order-7"})
        assert answer.status == 201, answer
        return str(answer.json["id"])

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(send, range(16)))
    assert len(ids) == 1
    assert each_site.get(f"{API}/jobs/count", token).json["count"] == 1


def test_repeated_request_after_a_lost_response_returns_the_same_job(
    each_site: Site,
) -> None:
    token = each_site.token()
    connection = each_site.connect()
    headers = {
        "Authorization": f"Bearer {token}",
        "Idempotency-Key": "k1",
        "Content-Type": "application/json",
    }
    connection.request("POST", f"{API}/jobs", msgspec.json.encode({"task": "charge"}), headers)
    connection.sock.recv(1)  # it was stored; the response is never read
    connection.close()
    (first,) = each_site.get(f"{API}/jobs", token).json["items"]
    assert each_site.post(f"{API}/jobs/{first['id']}/cancel", {}, token).status == 200
    again = each_site.post(f"{API}/jobs", {"task": "charge"}, token, headers={"Idempotency-Key": "k1"})
    assert (again.json["id"], again.json["state"]) == (first["id"], "cancelled")
    assert each_site.get(f"{API}/jobs/count", token).json["count"] == 1


def test_key_of_another_request_is_409_and_keys_are_per_tenant(site: Site) -> None:
    key = {"Idempotency-Key": "same"}
    acme, globex = site.token("admin", "acme"), site.token("admin", "globex")
    first = site.post(f"{API}/jobs", {"task": "one"}, acme, headers=key)
    other = site.post(f"{API}/jobs", {"task": "two"}, acme, headers=key)
    assert (first.status, other.status) == (201, 409)
    assert site.post(f"{API}/jobs", {"task": "two"}, globex, headers=key).status == 201
    assert site.post(f"{API}/jobs", {"task": "x"}, acme, headers={"Idempotency-Key": "x" * 201}).status == 422
