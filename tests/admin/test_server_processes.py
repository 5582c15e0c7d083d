"""``rota serve`` and ``rota up`` as processes: the first token, the link, the order of stopping."""

from __future__ import annotations

import http.client
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sites import DEADLINE_S, eventually

import rota

SOURCE = str(Path(rota.__file__).resolve().parents[1])
SHOP = """
import asyncio
from rota import Rota
app = Rota("sqlite:///shop.db", poll_interval_ms=50, lease_duration_s=5)

@app.task
async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "rested"

@app.every("1s")
async def tick() -> None: ...
"""


class Process:
    def __init__(self, popen: subprocess.Popen[bytes], out: Path) -> None:
        self.popen, self._out = popen, out

    @property
    def output(self) -> str:
        return self._out.read_text()

    def match(self, pattern: str) -> str:
        return str(eventually(lambda: re.search(pattern, self.output), f"{pattern} in {self.output}")[1])

    @property
    def url(self) -> str:
        return self.match(r"dashboard and API at (http\S+)")

    def ask(self, method: str, path: str, token: str = "", body: object = None) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=DEADLINE_S)
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {token}"} if token else {}
        )
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found


def command(*args: str, cwd: Path) -> list[str]:
    (cwd / "shop.py").write_text(SHOP)
    return [sys.executable, "-m", "rota", *args]


def environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ROTA_") and k != "DATABASE_URL"}
    return {**kept, "PYTHONPATH": SOURCE, "PYTHONUNBUFFERED": "1"}


@contextmanager
def started(*args: str, cwd: Path, terminal: bool = False) -> Iterator[Process]:
    """A command that is running; with ``terminal`` its messages go to one, and from there to the file."""
    out = cwd / "out.txt"
    out.unlink(missing_ok=True)
    with out.open("ab") as file, messages_to(out, terminal) as messages:
        popen = subprocess.Popen(
            command(*args, cwd=cwd), cwd=cwd, env=environment(), stdin=subprocess.DEVNULL, stdout=file,
            stderr=messages,
        )  # fmt: skip
    try:
        yield Process(popen, out)
    finally:
        popen.kill()
        popen.wait()


@contextmanager
def messages_to(out: Path, terminal: bool) -> Iterator[int]:
    if not terminal:
        yield subprocess.STDOUT
        return
    reading, writing = pty.openpty()

    def copy() -> None:
        with out.open("ab") as file, suppress(OSError):  # the terminal is gone when all its writers are
            while part := os.read(reading, 65_536):
                file.write(part)
                file.flush()
        os.close(reading)

    threading.Thread(target=copy, daemon=True).start()
    try:
        yield writing
    finally:
        os.close(writing)


def finished(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*args, cwd=cwd), cwd=cwd, env=environment(), capture_output=True, text=True,
        timeout=DEADLINE_S, check=False,
    )  # fmt: skip


def test_the_first_start_prints_an_admin_token_and_the_second_does_not(tmp_path: Path) -> None:
    serve = ("serve", "--port", "0", "--url", "sqlite:///shop.db")
    with started(*serve, cwd=tmp_path, terminal=True) as server:
        token = server.match(r"(rota_\w+_\S{43})")
        assert server.ask("GET", "/api/admin/jobs")[0] == 401
        assert server.ask("GET", "/api/admin/settings", token)[0] == 200
        server.popen.send_signal(signal.SIGTERM)
        assert server.popen.wait(DEADLINE_S) == 0
        assert server.output.index("API stopped") < server.output.index("store closed")
    with started(*serve, cwd=tmp_path, terminal=True) as server:
        assert server.ask("GET", "/api/admin/settings", token)[0] == 200
        assert "rota_" not in server.output


@pytest.mark.parametrize("args", [("serve", "--url", "sqlite:///shop.db"), ("up", "--app", "shop:app")])
def test_without_a_terminal_no_secret_is_printed_and_no_token_created(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    with started(*args, "--port", "0", cwd=tmp_path) as server:
        server.match("no token or user exists yet. Create a token: (rota token create --role admin)")
        assert "rota_" not in server.output and "once=" not in server.output
    listed = finished("token", "list", "--url", "sqlite:///shop.db", "--json", cwd=tmp_path)
    assert json.loads(listed.stdout)["items"] == []


def test_up_stops_scheduler_claims_jobs_api_and_store_in_this_order(tmp_path: Path) -> None:
    args = ("up", "--app", "shop:app", "--port", "0", "--print-link", "--log-format", "json")
    with started(*args, cwd=tmp_path, terminal=True) as up:
        token, code = up.match(r"(rota_\w+_\S{43})"), up.match(r"/#once=(\S+)")
        assert up.ask("POST", "/api/session", body={"once": code})[0] == 200
        assert (
            up.ask("POST", "/api/admin/jobs", token, {"task": "nap", "payload": {"seconds": 1.5}})[0] == 201
        )
        running = "/api/admin/jobs?state=running&task=nap"
        eventually(lambda: json.loads(up.ask("GET", running, token)[1])["items"], "the job runs")
        up.popen.send_signal(signal.SIGTERM)
        eventually(lambda: "no new jobs" in up.output, "the signal is heard")
        status, body = up.ask("GET", running, token)  # the API outlives the jobs
        assert status == 200 and len(json.loads(body)["items"]) == 1
        assert up.popen.wait(DEADLINE_S) == 0
        steps = ("no new jobs", "stopped (jobs run", "API stopped", "store closed")
        places = [up.output.index(step) for step in steps]
        assert places == sorted(places)
    listed = finished("--app", "shop:app", "jobs", "list", "--task", "nap", "--json", cwd=tmp_path)
    assert [job["state"] for job in json.loads(listed.stdout)["items"]] == ["succeeded"]


def test_a_second_signal_forces_up_to_stop(tmp_path: Path) -> None:
    args = ("up", "--app", "shop:app", "--port", "0", "--log-format", "json")
    with started(*args, cwd=tmp_path, terminal=True) as up:
        token = up.match(r"(rota_\w+_\S{43})")
        up.ask("POST", "/api/admin/jobs", token, {"task": "nap", "payload": {"seconds": 60}})
        running = "/api/admin/jobs?state=running&task=nap"
        eventually(lambda: json.loads(up.ask("GET", running, token)[1])["items"], "the job runs")
        up.popen.send_signal(signal.SIGINT)
        eventually(lambda: "no new jobs" in up.output, "the first signal is heard")
        up.popen.send_signal(signal.SIGINT)
        assert up.popen.wait(DEADLINE_S) == 1
        assert "store closed" in up.output


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("serve", "--host", "0.0.0.0"), "--behind-proxy"),
        (("serve", "--tls-key", "key.pem"), "--tls-cert"),
        (("serve", "--tls-cert", "missing.pem", "--tls-key", "missing.pem", "--port", "0"), "missing.pem"),
        (("up",), "--app"),
    ],
)
def test_invalid_server_options_fail_before_anything_starts(
    tmp_path: Path, args: tuple[str, ...], words: str
) -> None:
    done = finished(*args, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_a_port_in_use_is_an_error_with_a_remedy_and_the_demo_takes_another(tmp_path: Path) -> None:
    with started("serve", "--port", "0", cwd=tmp_path) as server:
        port = str(urlsplit(server.url).port)
        done = finished("serve", "--port", port, cwd=tmp_path)
        assert done.returncode == 2 and f"port {port}" in done.stderr and "--port" in done.stderr
        demo = subprocess.run(
            command("demo", "--seconds", "1", "--print-link", cwd=tmp_path), cwd=tmp_path, text=True,
            env={**environment(), "ROTA_ADMIN_PORT": port, "TMPDIR": str(tmp_path)}, capture_output=True,
            timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#once=", demo.stdout)
        assert demo.returncode == 0 and found is not None and found[1] != port
