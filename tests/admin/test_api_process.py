"""``rota up`` serves its API from a process of its own: neither starves the other, both end together."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from sites import eventually
from test_server_processes import Process, finished, started

from rota import ConfigError, Rota
from rota.admin import api_process
from rota.admin.server import Listen

UP = ("up", "--app", "shop:app", "--port", "0", "--log-format", "json")
FIRES = 12
FIELDS = {f"field{n}": [n, {"is": n}] for n in range(8000)}  # takes long to decode, mask and encode


def children_of(pid: int) -> dict[str, int]:
    """The processes that this one has started, by program."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            command = stat.with_name("cmdline").read_text()
        except OSError:
            continue
        if parent == pid:
            found["api" if "api_program" in command else "guard"] = int(stat.parent.name)
    return found


def api_of(up: Process) -> int:
    eventually(lambda: "api" in children_of(up.popen.pid), "the API's process is there")
    return children_of(up.popen.pid)["api"]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def jobs(up: Process, token: str, query: str) -> list[dict[str, str]]:
    items: list[dict[str, str]] = json.loads(up.ask("GET", f"/api/admin/jobs?limit=100&{query}", token)[1])[
        "items"
    ]
    return items


@pytest.mark.timeout(300)
def test_heavy_requests_take_no_lease_and_stall_no_schedule(tmp_path: Path) -> None:
    with started(*UP, cwd=tmp_path, terminal=True) as up:
        token = up.match(r"(rota_\w+_\S{43})")
        nap = {"task": "nap", "payload": {"seconds": FIRES}, "max_attempts": 5}
        assert up.ask("POST", "/api/admin/jobs", token, nap)[0] == 201
        heavy = {"task": "elsewhere", "payload": FIELDS}
        status, body = up.ask("POST", "/api/admin/jobs", token, heavy)
        assert status == 201, body
        path, over = f"/api/admin/jobs/{json.loads(body)['id']}", threading.Event()

        def ask_until_over() -> None:
            while not over.is_set():
                up.ask("GET", path, token)

        threads = [threading.Thread(target=ask_until_over) for _ in range(20)]
        for thread in threads:
            thread.start()
        try:
            eventually(
                lambda: len(jobs(up, token, "task=tick&state=succeeded")) >= FIRES,
                "schedules fire",
                within=120,
            )
        finally:
            over.set()
            for thread in threads:
                thread.join()
        eventually(lambda: jobs(up, token, "task=nap&state=succeeded"), "the job ends", within=60)
        (job,) = jobs(up, token, "task=nap&state=succeeded")
        assert job["attempt"] == 1 and "rescued" not in up.output


def test_probes_answer_for_the_worker_too(tmp_path: Path) -> None:
    with started(*UP, cwd=tmp_path) as up:
        eventually(lambda: {"worker process", "heartbeat", "rescue"} <= services(up), "they are shown")
        assert up.ask("GET", "/healthz")[0] == 200


def services(up: Process) -> set[str]:
    return {one["name"] for one in json.loads(up.ask("GET", "/readyz")[1])["services"]}


def test_the_process_is_restarted_and_its_port_stays(tmp_path: Path) -> None:
    with started(*UP, cwd=tmp_path, terminal=True) as up:
        token = up.match(r"(rota_\w+_\S{43})")
        first = api_of(up)
        os.kill(first, signal.SIGKILL)
        assert up.ask("GET", "/api/admin/jobs", token)[0] == 200  # waits in the queue of the socket
        assert api_of(up) != first and "restarting in" in up.output
        assert up.output.count("dashboard and API at") == 1
        up.popen.send_signal(signal.SIGTERM)
        assert up.popen.wait(60) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_no_process_is_left(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with started(*UP, cwd=tmp_path, terminal=True) as up:
        up.match(r"(rota_\w+_\S{43})")
        eventually(lambda: set(children_of(up.popen.pid)) == {"api", "guard"}, "both are there")
        children = children_of(up.popen.pid)
        os.kill(children["api"], signal.SIGTERM)  # as a service manager does, to every process of a service
        os.kill(up.popen.pid, number)
        assert up.popen.wait(60) == code
        eventually(lambda: all(map(is_gone, children.values())), "they have ended")


def test_a_port_in_use_ends_up_before_anything_starts(tmp_path: Path) -> None:
    with started("serve", "--port", "0", "--url", "sqlite:///other.db", cwd=tmp_path) as server:
        port = server.url.rpartition(":")[2]
        done = finished("up", "--app", "shop:app", "--port", port, cwd=tmp_path)
    assert done.returncode == 2 and f"port {port}" in done.stderr
    assert not (tmp_path / "shop.db").exists()


def test_what_the_process_cannot_use_is_an_error_of_the_command(tmp_path: Path) -> None:
    certificate = ("--tls-cert", "missing.pem", "--tls-key", "missing.pem")
    done = finished(*UP, *certificate, cwd=tmp_path)
    assert done.returncode == 2 and "missing.pem" in done.stderr and "Traceback" not in done.stderr


def test_a_store_in_memory_is_served_by_the_same_process(tmp_path: Path) -> None:
    with started(*UP, "--url", "sqlite://:memory:", cwd=tmp_path, terminal=True) as up:
        token = up.match(r"(rota_\w+_\S{43})")
        assert up.ask("GET", "/api/admin/jobs", token)[0] == 200
        assert children_of(up.popen.pid) == {}


async def test_a_process_that_never_answers_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "silent.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(api_process, "START_S", 0.5)
    monkeypatch.setattr(api_process, "END_S", 0.5)
    app = Rota(f"sqlite:///{tmp_path / 'rota.db'}")
    program = api_process.ApiProgram(module="silent", app="shop:app")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        process = api_process.ApiProcess(app, program, Listen(port=0), listening)
        with pytest.raises(ConfigError, match=r"did not start within 0\.5 s"):
            await process.start(link=False, token=False)
    assert process._pid is not None and is_gone(process._pid)
