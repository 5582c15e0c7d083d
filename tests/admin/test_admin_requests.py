"""Reading HTTP requests: bounds on bodies, queries and the time they may take."""

from __future__ import annotations

import socket

import msgspec
import pytest
from sites import API, Site

from rota.admin import requests as bounds
from rota.admin import responses


def test_long_body_is_413_before_it_is_read(site: Site) -> None:
    token = site.token()
    with socket.create_connection(site.address, 10) as line:
        head = f"POST {API}/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n".encode())
        assert b" 413 " in line.recv(1000)
    with socket.create_connection(site.address, 10) as line:
        line.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        line.sendall(b"1E8480\r\n" + b"x" * 2_000_000 + b"\r\n")  # more than is accepted, and not the end
        assert b" 413 " in line.recv(1000)


def test_client_that_sends_a_long_body_to_its_end_sees_the_413(site: Site) -> None:
    chunks = iter([b'{"task": "', *[b"x" * 1_000_000] * 20, b'"}'])
    headers = {"Authorization": f"Bearer {site.token()}", "Content-Type": "application/json"}
    connection = site.connect()
    connection.request("POST", f"{API}/jobs", chunks, headers, encode_chunked=True)
    response = connection.getresponse()
    assert (response.status, msgspec.json.decode(response.read())["code"]) == (413, "too_large")
    connection.close()


@pytest.mark.parametrize(("bound", "value"), [("DRAIN_BYTES", 1), ("DRAIN_S", 0.1)])
def test_rest_of_a_long_body_is_read_within_bounds(
    site: Site, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    monkeypatch.setattr(responses, bound, value)
    with socket.create_connection(site.address, 10) as line:
        head = f"POST {API}/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.token()}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n{{".encode())
        received = b""
        while part := line.recv(1000):  # until the server closes, although the body has not ended
            received += part
    assert b" 413 " in received


@pytest.mark.parametrize(
    "body",
    [b'{"a":' * 200 + b"1" + b"}" * 200, b"[" * 100_000, b'{"task":"x","payload":' + b'{"a":' * 99_999],
)
def test_deep_json_is_422(site: Site, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    assert site.post(f"{API}/jobs", token=site.token(), headers=headers, raw=body).status == 422


def test_depth_is_counted_outside_of_strings() -> None:
    assert not bounds.is_too_deep(b'["' + b"[{" * 500 + b'\\"' + b"[" * 500 + b'"]')
    assert not bounds.is_too_deep(b"[" + b"[]," * 500 + b"[]]")
    assert bounds.is_too_deep(b"[" * 101 + b"]" * 101) and not bounds.is_too_deep(b"[" * 100 + b"]" * 100)


@pytest.mark.parametrize(
    "body", [b"{", b"nonsense", b"\xff\xfe", b'"text"', b"[]", b"null", b'{"task":"x","more":1}']
)
def test_invalid_body_is_422(site: Site, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = site.post(f"{API}/jobs", token=site.token(), headers=headers, raw=body)
    assert (answer.status, answer.code) == (422, "bad_input")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_only_json_is_accepted_also_for_sign_in(site: Site, kind: str) -> None:
    headers = {"Content-Type": kind}
    assert site.post("/api/session", headers=headers, raw=b'{"token": "x"}').status == 415
    assert site.post(f"{API}/jobs", token=site.token(), headers=headers, raw=b'{"task": "x"}').status == 415


def test_slow_body_is_408(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "READ_S", 0.2)
    with socket.create_connection(site.address, 10) as line:
        head = f"POST {API}/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.token()}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert b" 408 " in line.recv(1000)


def test_a_page_has_at_most_200_rows_and_an_activity_at_most_90_days(site: Site) -> None:
    token = site.token()
    for query in (
        "jobs?limit=201",
        "jobs?limit=0",
        "audit?limit=1000",
        "activity?hours=2161",
        "jobs?limit=x",
    ):
        answer = site.get(f"{API}/{query}", token)
        assert answer.status == 422 and answer.json["field"] in query


def test_lists_in_a_query_are_written_with_commas_or_repeated(site: Site) -> None:
    token = site.token()
    site.job()
    for query in ("state=queued,failed", "state=failed&state=queued"):
        assert len(site.get(f"{API}/jobs?{query}", token).json["items"]) == 1
    assert site.get(f"{API}/jobs?state=sleeping", token).status == 422


def test_two_lengths_of_a_body_are_400_and_close_the_connection(site: Site) -> None:
    """A proxy that believes the other one would take the rest for the request of someone else."""
    second = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(site.address, timeout=60) as line:
        line.sendall(
            b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (5 + len(second)) + second
        )
        answer = b"".join(iter(lambda: line.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 400") and b"ambiguous_length" in answer
    assert answer.count(b"HTTP/1.1 ") == 1
