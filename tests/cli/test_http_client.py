"""The line to a server: every action has its request; strange, hostile and silent servers do no harm."""

from __future__ import annotations

import inspect
import signal
import socket
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.command import environment, eventually
from cli.fake_server import ME, Reply, answering, problem, reply
from rota import Rota
from rota.admin.routes import ROUTES, Route
from rota.cli.parts import http_client
from rota.cli.parts.remote import RemoteOperations
from rota.cli.root import root
from rota.errors import (
    AlreadyRegistered,
    ConfigError,
    DuplicateJob,
    Forbidden,
    IllegalMove,
    NotFound,
    OptionError,
    PayloadError,
    QuotaExceeded,
    StoreError,
    StoreUnavailable,
)
from rota.model import Actor
from rota.operate.requests import JobsRequest, UpdateJobRequest

TOKEN = "rota_canary_s3cret-token"
JOB = "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60"


def closed_url() -> str:
    """An address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def invoke(api: str, *args: str, **env: str) -> Result:
    result = CliRunner(env={"ROTA_TOKEN": TOKEN, **env}).invoke(root, ["--api", api, *args])
    assert TOKEN not in result.output
    return result


# --- every action --------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.action)
async def test_every_operation_has_a_remote_counterpart(route: Route) -> None:
    group, _, name = route.action.partition(".")
    app = Rota("sqlite://:memory:")
    near = getattr(getattr(app.operations(Actor(name="t")), group), name)
    far = getattr(getattr(RemoteOperations("http://127.0.0.1:1", TOKEN), group), name)
    assert inspect.signature(far) == inspect.signature(near)
    assert inspect.iscoroutinefunction(far)


NOT_REMOTE = {"access.create_first_token"}  # a server does it for itself when it starts


def test_every_action_of_a_group_has_a_route() -> None:
    operations = Rota("sqlite://:memory:").operations(Actor(name="t"))
    for group in ("jobs", "schedules", "gates", "system", "access"):
        own = getattr(operations, group)
        marked = [name for name in dir(own) if hasattr(getattr(own, name), "permission")]
        routed = {route.action for route in ROUTES if route.action.startswith(f"{group}.")}
        assert {f"{group}.{name}" for name in marked} - NOT_REMOTE == routed


async def test_a_request_contains_only_what_was_given() -> None:
    with answering(reply(200, b'{"items": [], "next": null}')) as (url, asked):
        operations: Any = RemoteOperations(f"{url}/behind/", TOKEN)
        await operations.jobs.list(JobsRequest(state=("failed", "queued"), task="a&b=c ü/", limit=7))  # type: ignore[arg-type]
        await operations.close()
    ((method, path, headers, body),) = asked
    assert (method, body) == ("GET", b"")
    assert path == "/behind/api/admin/jobs?state=failed%2Cqueued&task=a%26b%3Dc+%C3%BC%2F&limit=7"
    assert headers["Authorization"] == f"Bearer {TOKEN}"


async def test_path_parameters_are_quoted() -> None:
    with answering(reply(204)) as (url, asked):
        operations: Any = RemoteOperations(url, TOKEN)
        await operations.gates.resume("schedule:default/../../x?y#z")
        await operations.close()
    assert asked[0][:2] == ("DELETE", "/api/admin/gates/schedule%3Adefault%2F..%2F..%2Fx%3Fy%23z")


async def test_a_closed_connection_is_reopened_for_reads_only() -> None:
    def once(request: BaseHTTPRequestHandler) -> None:
        reply(200, b'{"items": [], "next": null}')(request)
        request.close_connection = True  # without saying so

    with answering(once) as (url, asked):
        operations: Any = RemoteOperations(url, TOKEN)
        for _ in range(3):
            await operations.jobs.list(JobsRequest())
        await operations.close()
    assert len(asked) == 3


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "more", "kind"),
    [
        (400, "bad_id", {}, OptionError),
        (403, "forbidden", {}, Forbidden),
        (404, "not_found", {}, NotFound),
        (409, "illegal_move", {"state": "running"}, IllegalMove),
        (409, "duplicate_job", {"job": JOB}, DuplicateJob),
        (409, "already_registered", {}, AlreadyRegistered),
        (413, "too_large", {}, PayloadError),
        (421, "wrong_host", {}, ConfigError),
        (422, "bad_input", {"field": "cron"}, OptionError),
        (422, "bad_input", {"field": "payload"}, PayloadError),
        (429, "quota_exceeded", {}, QuotaExceeded),
        (500, "internal", {}, StoreError),
        (503, "store_unavailable", {}, StoreUnavailable),
    ],
)
async def test_a_problem_response_becomes_the_matching_error(
    status: int, code: str, more: dict[str, str], kind: type[Exception]
) -> None:
    with answering(problem(status, code, **more)) as (url, _):
        operations: Any = RemoteOperations(url, TOKEN)
        with pytest.raises(kind, match="as it is") as caught:
            await operations.jobs.move(JOB, UpdateJobRequest(now=True))
        await operations.close()
    assert type(caught.value) is kind
    if isinstance(caught.value, IllegalMove):
        assert caught.value.state == "running"
    if isinstance(caught.value, DuplicateJob):
        assert caught.value.job_id == JOB


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (reply(401), 2, "token is missing, invalid or expired"),
        (reply(302, Location="https://evil.test/\x1b[31m"), 2, "not a rota server"),
        (reply(200, b"<html>hello</html>", "text/html"), 2, "not a rota server"),
        (reply(404, b"<html>nothing</html>", "text/html"), 2, "not a rota server"),
        (reply(200, b'{"items": 5}'), 2, "is invalid"),
        (reply(200, b"[" * 100_000), 2, "is invalid"),
        (reply(502, b"bad gateway", "text/plain"), 2, "502"),
        (problem(404, "no_such_path"), 2, "not a rota server"),
        (problem(503, "store_unavailable", detail="\x1b]0;owned\x07"), 3, "owned"),
    ],
)
def test_an_unexpected_response_is_explained(answer: Reply, code: int, words: str) -> None:
    with answering(answer) as (url, asked):
        result = invoke(url, "jobs", "list")
    assert (result.exit_code, words in result.stderr) == (code, True), result.output
    assert result.output.replace("\n", "").isprintable()
    assert len(asked) == 1  # a redirect is never followed


def test_an_unreachable_server_exits_with_3() -> None:
    def hang_up(request: BaseHTTPRequestHandler) -> None:
        request.close_connection = True

    with answering(hang_up) as (url, _):
        assert invoke(url, "stats").exit_code == 3
    gone = invoke(url := closed_url(), "stats")
    assert (gone.exit_code, f"{url} is unreachable" in gone.stderr) == (3, True)
    health = invoke(url, "health", "--json")
    assert (health.exit_code, msgspec.json.decode(health.stdout)["status"]) == (3, "unreachable")


def test_a_server_that_does_not_respond_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "TIMEOUT_S", 0.2)
    release = threading.Event()

    def silent(request: BaseHTTPRequestHandler) -> None:
        release.wait(30)
        request.close_connection = True

    with answering(silent) as (url, _):
        result = invoke(url, "stats")
        release.set()
    assert (result.exit_code, "no response in time" in result.stderr) == (3, True)


def test_a_bulk_action_reports_its_progress_if_the_server_fails(tmp_path: Path) -> None:
    step = {"action": "cancel", "matched": 1200, "exact": True, "refused": 0, "sample": []}
    steps = [{**step, "dry_run": True, "done": 0}, {**step, "dry_run": False, "done": 500, "next": JOB}]

    def answer(request: BaseHTTPRequestHandler) -> None:
        if request.path.endswith("/me"):
            reply(200, msgspec.json.encode(ME))(request)
        elif steps:
            reply(200, msgspec.json.encode(steps.pop(0)))(request)
        else:
            problem(503, "store_unavailable")(request)

    with answering(answer) as (url, asked):
        result = invoke(url, "jobs", "cancel", "--task", "add", "--yes")
    assert result.exit_code == 3
    assert "at least 500 of 1,200 done; run the command again to continue" in result.stderr
    assert msgspec.json.decode(asked[-1][3])["cursor"] == JOB


def test_what_a_step_did_before_the_store_failed_is_counted(tmp_path: Path) -> None:
    step = {"action": "cancel", "matched": 1200, "exact": True, "refused": 3, "sample": []}
    steps = [{**step, "dry_run": True, "done": 0}, {**step, "dry_run": False, "done": 497, "next": JOB}]

    def answer(request: BaseHTTPRequestHandler) -> None:
        if request.path.endswith("/me"):
            reply(200, msgspec.json.encode(ME))(request)
        elif steps:
            reply(200, msgspec.json.encode(steps.pop(0)))(request)
        else:
            problem(503, "interrupted", done=200)(request)

    with answering(answer) as (url, _):
        result = invoke(url, "jobs", "cancel", "--task", "add", "--yes", "--json")
    assert result.exit_code == 3
    assert "at least 697 of 1,200 done" in result.stderr
    told = msgspec.json.decode(result.stdout)
    assert told == {
        "action": "cancel", "matched": 1200, "exact": True, "done": 697, "refused": 3, "stopped": True
    }  # fmt: skip


def test_a_request_that_was_one_too_many_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def pause(seconds: float, until: object) -> bool:
        waited.append(seconds)
        return False

    monkeypatch.setattr(http_client, "pause", pause)
    refused = [reply(429, b"{}", "application/problem+json", Retry_After=wait) for wait in ("1", "2")]

    def answer(request: BaseHTTPRequestHandler) -> None:
        (refused.pop(0) if refused else reply(200, msgspec.json.encode(ME)))(request)

    with answering(answer) as (url, asked):
        invoke(url, "stats")
    assert waited == [1.0, 2.0]
    assert [path for _, path, *_ in asked[:3]] == [asked[0][1]] * 3


def test_ctrl_c_does_not_wait_for_a_response(tmp_path: Path) -> None:
    release = threading.Event()

    def silent(request: BaseHTTPRequestHandler) -> None:
        release.wait(60)
        request.close_connection = True

    with answering(silent) as (url, asked):
        process = subprocess.Popen(
            [sys.executable, "-m", "rota", "stats"], cwd=tmp_path, stderr=subprocess.DEVNULL,
            env=environment(ROTA_API=url, ROTA_TOKEN="x"),
        )  # fmt: skip
        try:
            eventually(lambda: asked, "it never asked")
            process.send_signal(signal.SIGINT)
            assert process.wait(http_client.TIMEOUT_S / 2) == 1
        finally:
            process.kill()
            release.set()


def test_an_oversized_response_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_BYTES", 1000)
    with answering(reply(200, b" " * 5000)) as (url, _):
        assert "larger than 1000 bytes" in invoke(url, "stats").stderr


@pytest.mark.parametrize(
    ("api", "words"),
    [
        ("rota.example.org", "https://rota.example.org"),
        ("ftp://x", "https://rota.example.org"),
        ("http://me:s3cret@host", "user or password"),
        ("http://host:99999999", "not a URL"),
        ("http://host/?token=x", "must not contain ? or #"),
    ],
)
def test_an_invalid_api_url_is_rejected(api: str, words: str) -> None:
    result = invoke(api, "stats")
    assert (result.exit_code, words in result.stderr) == (2, True), result.output
    assert "s3cret" not in result.output


@pytest.mark.parametrize("token", ["a b", "line\nbreak", "ünïcode", "\x00"])
def test_an_invalid_token_is_rejected_without_showing_it(token: str) -> None:
    result = CliRunner().invoke(root, ["--api", "http://127.0.0.1:1", "--token", token, "stats"])
    assert (result.exit_code, "invalid characters" in result.stderr) == (2, True)
    assert token not in result.output


def test_the_token_is_not_in_a_traceback_either() -> None:
    result = CliRunner(env={"ROTA_TOKEN": TOKEN}).invoke(root, ["--debug", "--api", closed_url(), "stats"])
    assert "Traceback" in result.stderr
    assert TOKEN not in result.output


# --- TLS -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that is trusted only when named explicitly, with its key."""
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{file}.key",
         "-out", str(file), "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return file


def test_certificates_are_verified_and_ca_file_is_trusted(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, f"{certificate}.key")
    with answering(reply(200, b'{"items": [], "next": null}'), context) as (url, asked):
        distrusted = invoke(url, "jobs", "list")
        assert (distrusted.exit_code, "--ca-file" in distrusted.stderr) == (2, True), distrusted.output
        assert asked == []  # the token was not sent
        named = url.replace("127.0.0.1", "localhost")
        assert (
            invoke(named, "jobs", "list", "--ca-file", str(certificate)).exit_code == 2
        )  # another's certificate
        missing = invoke(url, "jobs", "list", "--ca-file", "nowhere.pem")
        assert (missing.exit_code, "nowhere.pem" in missing.stderr) == (2, True)
        assert asked == []
        invoke(url, "jobs", "list", "--ca-file", str(certificate))
        assert asked[0][:2] == ("GET", "/api/admin/jobs")
