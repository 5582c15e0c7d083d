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
from command import environment, eventually
from strange_server import ME, Reply, answering, problem, reply

from rota import Rota
from rota.admin.routes import ROUTES, Route
from rota.cli import link
from rota.cli.remote import RemoteOperations
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
    StoreError,
    StoreUnavailable,
)
from rota.model import Actor
from rota.operate.requests import JobsRequest, UpdateJobRequest

TOKEN = "rota_canary_s3cret-token"
JOB = "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60"


def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def invoke(api: str, *args: str, **env: str) -> Result:
    result = CliRunner(env={"ROTA_TOKEN": TOKEN, **env}).invoke(root, ["--api", api, *args])
    assert TOKEN not in result.output
    return result


# --- every action --------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.action)
async def test_every_action_of_the_desk_has_its_twin(route: Route) -> None:
    room, _, name = route.action.partition(".")
    app = Rota("sqlite://:memory:")
    near = getattr(getattr(app.operations(Actor(name="t")), room), name)
    far = getattr(getattr(RemoteOperations("http://127.0.0.1:1", TOKEN), room), name)
    assert inspect.signature(far) == inspect.signature(near)
    assert inspect.iscoroutinefunction(far)


def test_nothing_of_a_room_is_left_out() -> None:
    operations = Rota("sqlite://:memory:").operations(Actor(name="t"))
    for room in ("jobs", "schedules", "gates", "house", "access"):
        own = getattr(operations, room)
        marked = [name for name in dir(own) if hasattr(getattr(own, name), "permission")]
        assert {f"{room}.{name}" for name in marked} == {
            route.action for route in ROUTES if route.action.startswith(f"{room}.")
        }


async def test_a_request_says_what_was_asked_and_no_more() -> None:
    with answering(reply(200, b'{"items": [], "next": null}')) as (url, asked):
        operations: Any = RemoteOperations(f"{url}/behind/", TOKEN)
        await operations.jobs.list(JobsRequest(state=("failed", "queued"), task="a&b=c ü/", limit=7))  # type: ignore[arg-type]
        await operations.close()
    ((method, path, headers, body),) = asked
    assert (method, body) == ("GET", b"")
    assert path == "/behind/api/admin/jobs?state=failed%2Cqueued&task=a%26b%3Dc+%C3%BC%2F&limit=7"
    assert headers["Authorization"] == f"Bearer {TOKEN}"


async def test_what_stands_in_a_path_stays_in_its_place() -> None:
    with answering(reply(204)) as (url, asked):
        operations: Any = RemoteOperations(url, TOKEN)
        await operations.gates.resume("schedule:default/../../x?y#z")
        await operations.close()
    assert asked[0][:2] == ("DELETE", "/api/admin/gates/schedule%3Adefault%2F..%2F..%2Fx%3Fy%23z")


async def test_a_kept_line_that_was_closed_meanwhile_is_opened_again_for_a_question_only() -> None:
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
        (500, "internal", {}, StoreError),
        (503, "store_unavailable", {}, StoreUnavailable),
    ],
)
async def test_a_refusal_is_the_error_that_the_desk_would_raise(
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
        (reply(401), 2, "token is missing, wrong or expired"),
        (reply(302, Location="https://evil.test/\x1b[31m"), 2, "check --api"),
        (reply(200, b"<html>hello</html>", "text/html"), 2, "check --api"),
        (reply(404, b"<html>nothing</html>", "text/html"), 2, "check --api"),
        (reply(200, b'{"items": 5}'), 2, "cannot be read"),
        (reply(200, b"[" * 100_000), 2, "cannot be read"),
        (reply(502, b"bad gateway", "text/plain"), 2, "502"),
        (problem(404, "no_such_path"), 2, "check --api"),
        (problem(503, "store_unavailable", detail="\x1b]0;owned\x07"), 3, "owned"),
    ],
)
def test_a_strange_answer_is_explained(answer: Reply, code: int, words: str) -> None:
    with answering(answer) as (url, asked):
        result = invoke(url, "jobs", "list")
    assert (result.exit_code, words in result.stderr) == (code, True), result.output
    assert result.output.replace("\n", "").isprintable()
    assert len(asked) == 1  # a redirect is never followed


def test_a_server_that_hangs_up_or_is_not_there_is_exit_code_3() -> None:
    def hang_up(request: BaseHTTPRequestHandler) -> None:
        request.close_connection = True

    with answering(hang_up) as (url, _):
        assert invoke(url, "stats").exit_code == 3
    gone = invoke(url := nobody(), "stats")
    assert (gone.exit_code, f"{url} cannot be reached" in gone.stderr) == (3, True)
    health = invoke(url, "health", "--json")
    assert (health.exit_code, msgspec.json.decode(health.stdout)["status"]) == (3, "unreachable")


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "TIMEOUT_S", 0.2)
    release = threading.Event()

    def silent(request: BaseHTTPRequestHandler) -> None:
        release.wait(30)
        request.close_connection = True

    with answering(silent) as (url, _):
        result = invoke(url, "stats")
        release.set()
    assert (result.exit_code, "no answer in time" in result.stderr) == (3, True)


def test_a_server_that_goes_away_in_the_middle_of_many_is_told_with_how_many_are_done(tmp_path: Path) -> None:
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
    assert "500 were done" in result.stderr
    assert msgspec.json.decode(asked[-1][3])["cursor"] == JOB


def test_ctrl_c_does_not_wait_for_a_silent_server(tmp_path: Path) -> None:
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
            assert process.wait(link.TIMEOUT_S / 2) == 1
        finally:
            process.kill()
            release.set()


def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "MOST_BYTES", 1000)
    with answering(reply(200, b" " * 5000)) as (url, _):
        assert "larger than 1000 bytes" in invoke(url, "stats").stderr


@pytest.mark.parametrize(
    ("api", "words"),
    [
        ("rota.example.org", "https://rota.example.org"),
        ("ftp://x", "https://rota.example.org"),
        ("http://me:s3cret@host", "user or password"),
        ("http://host:99999999", "no address"),
        ("http://host/?token=x", "without ? and #"),
    ],
)
def test_an_address_that_is_none_is_refused(api: str, words: str) -> None:
    result = invoke(api, "stats")
    assert (result.exit_code, words in result.stderr) == (2, True), result.output
    assert "s3cret" not in result.output


@pytest.mark.parametrize("token", ["a b", "line\nbreak", "ünïcode", "\x00"])
def test_a_token_that_cannot_be_one_is_refused_unseen(token: str) -> None:
    result = CliRunner().invoke(root, ["--api", "http://127.0.0.1:1", "--token", token, "stats"])
    assert (result.exit_code, "no token has" in result.stderr) == (2, True)
    assert token not in result.output


def test_the_token_is_not_in_a_traceback_either() -> None:
    result = CliRunner(env={"ROTA_TOKEN": TOKEN}).invoke(root, ["--debug", "--api", nobody(), "stats"])
    assert "Traceback" in result.stderr
    assert TOKEN not in result.output


# --- TLS -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that only those trust who are told to, with its key."""
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{file}.key",
         "-out", str(file), "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return file


def test_a_certificate_is_verified_and_an_own_authority_can_be_named(certificate: Path) -> None:
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
