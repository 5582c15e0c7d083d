"""``rota worker``: how it starts, how it stops, and what a supervisor does with several of them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from cli.command import eventually, make_shop, read_json, rota_command, said, started
from rota.cli.parts.supervisor import command
from rota.cli.root import root

WORKER = ("worker", "--app", "shop:app", "--log-format", "text")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_URL", "sqlite:///shop.db")
    return make_shop(tmp_path)


def ask(*args: str) -> Any:
    return msgspec.json.decode(CliRunner().invoke(root, [*args, "--json"]).stdout)


def enqueue(task: str, payload: str, *more: str) -> str:
    job: str = ask("jobs", "enqueue", task, "--payload", payload, *more)["id"]
    return job


def state(job: str) -> str:
    found: str = ask("jobs", "show", job)["state"]
    return found


def workers() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask("workers", "list")["items"]
    return found


def running(job: str) -> None:
    eventually(lambda: state(job) == "running", f"job {job} runs")


def probe(port: int, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, msgspec.json.decode(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_a_worker_answers_probes_and_reports_its_services(shop: Path) -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        refused = rota_command(*WORKER, "--health-port", str(port), cwd=shop)
        assert refused.returncode == 2 and f"--health-port {port}: cannot listen" in refused.stderr
    with started(*WORKER, "--health-port", str(port), cwd=shop):
        eventually(lambda: " started: " in said(shop), "the worker is up")
        eventually(lambda: probe(port, "/readyz")[0] == 200, "it is ready")
        ready = probe(port, "/readyz")[1]
        assert (ready["status"], ready["store"]) == ("ready", "ok")
        assert {(one["name"], one["state"]) for one in ready["services"]} >= {
            ("turns", "ok"),
            ("rescue", "ok"),
        }
        assert probe(port, "/healthz") == (200, {"status": "alive", "services": []})
        assert probe(port, "/metrics")[0] == 404
        names = {"turns", "heartbeat", "gates", "rescue", "prune", "seal", "unserved", "scheduler", "fleet"}
        names |= {"tasks", "expire", "budgets"}
        eventually(
            lambda: {one["name"] for worker in workers() for one in worker["services"]} == names,
            "the services are in the worker's document",
        )


def test_a_health_port_is_for_one_process(shop: Path) -> None:
    refused = rota_command(*WORKER, "--health-port", "8080", "--processes", "2", cwd=shop)
    assert refused.returncode == 2 and "leave out --processes" in refused.stderr


# --- one process ---------------------------------------------------------------------------------


def test_a_burst_runs_what_is_due_and_ends(shop: Path) -> None:
    due, later = enqueue("add", '{"a": 1, "b": 2}'), enqueue("add", '{"a": 1, "b": 2}', "--delay", "1h")
    done = rota_command(*WORKER, "--burst", cwd=shop)
    assert done.returncode == 0
    assert (state(due), state(later)) == ("succeeded", "queued")
    assert workers() == []


def test_the_banner_shows_what_will_run_and_how_to_stop(shop: Path) -> None:
    done = rota_command(
        *WORKER,
        "--burst",
        "-q",
        "mail,default",
        "-q",
        "bulk",
        "--exclude-queues",
        "slow",
        "-c",
        "7",
        cwd=shop,
    )
    for words in (
        "sqlite:///shop.db",
        "add, boom, nap",
        "mail, default, bulk except slow",
        "7 jobs at once",
        "Ctrl-C",
    ):
        assert words in done.stderr


def test_log_lines_are_json_off_a_terminal(shop: Path) -> None:
    done = rota_command("worker", "--app", "shop", "--burst", cwd=shop)
    records = [msgspec.json.decode(line) for line in done.stderr.splitlines()]
    assert records
    assert all({"at", "level", "logger", "message"} <= record.keys() for record in records)


def test_logs_of_a_task_are_printed_and_stored(shop: Path) -> None:
    with (shop / "shop.py").open("a") as file:
        file.write("\nimport logging\n@app.task\ndef talk() -> None:\n")
        file.write("    logging.getLogger('shop').info('hello\\x1b[2J')\n")
    job = enqueue("talk", "{}")
    done = rota_command(*WORKER, "--burst", cwd=shop)
    assert "hello\\x1b[2J" in done.stderr and "\x1b" not in done.stderr
    assert "shop: hello" in ask("jobs", "show", job)["attempts"][0]["logs"][0]["message"]


def test_only_the_named_queues_are_served(shop: Path) -> None:
    mail = enqueue("add", '{"a": 1, "b": 2}', "--queue", "mail")
    bulk = enqueue("add", '{"a": 1, "b": 2}', "--queue", "bulk")
    rota_command(*WORKER, "--burst", "-q", "mail", cwd=shop)
    assert (state(mail), state(bulk)) == ("succeeded", "queued")
    rota_command(*WORKER, "--burst", "--exclude-queues", "bulk", cwd=shop)
    assert state(bulk) == "queued"


@pytest.mark.parametrize(
    "args",
    [
        ["-c", "0"],
        ["-c", "many"],
        ["-q", "a,,b"],
        ["--max-jobs", "0"],
        ["--log-level", "loud"],
        ["--processes", "0"],
    ],
)
def test_a_bad_option_is_a_usage_error(args: list[str]) -> None:
    result = CliRunner().invoke(root, ["worker", "--app", "shop", *args])
    assert result.exit_code == 2
    assert args[0] in result.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_running_jobs_finish(shop: Path, number: signal.Signals) -> None:
    job = enqueue("nap", '{"seconds": 1}')
    with started(*WORKER, cwd=shop) as worker:
        running(job)
        worker.send_signal(number)
        assert worker.wait(20) == 0
    assert state(job) == "succeeded"
    assert f"{number.name}: no new jobs" in said(shop)


def test_a_second_signal_releases_running_jobs(shop: Path) -> None:
    job = enqueue("nap", '{"seconds": 60}')
    with started(*WORKER, cwd=shop) as worker:
        running(job)
        worker.send_signal(signal.SIGTERM)
        eventually(lambda: "SIGTERM: no new jobs" in said(shop), "the first signal is heard")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 1
    assert "released 1 unfinished job" in said(shop)
    assert (state(job), ask("jobs", "show", job)["attempt"]) == ("queued", 0)


def test_jobs_that_exceed_the_shutdown_timeout_are_released(shop: Path) -> None:
    job = enqueue("nap", '{"seconds": 60}')
    with started(*WORKER, "--shutdown-timeout", "0.2", cwd=shop) as worker:
        running(job)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0
    assert state(job) == "queued"


def test_health_follows_the_worker(shop: Path) -> None:
    enqueue("mystery", "{}")
    degraded = ask("health")
    assert (degraded["status"], degraded["workers"]) == ("degraded", 0)
    with started(*WORKER, "-n", "front-desk", cwd=shop) as worker:
        eventually(workers, "the worker is listed")
        found = workers()[0]
        assert found["id"].startswith("front-desk-")
        assert (found["pid"], found["tasks"]) == (worker.pid, ["add", "boom", "nap"])
        assert ask("health")["problems"] == [
            "no running worker has task mystery: at least 1 due job cannot start"
        ]
        mystery = ask("jobs", "list", "--task", "mystery")["items"][0]["id"]
        assert "No running worker has task mystery" in ask("jobs", "show", mystery)["hindrance"]
        CliRunner().invoke(root, ["jobs", "cancel", mystery])
        healthy = rota_command("health", "--url", "sqlite:///shop.db", cwd=shop)
        assert (healthy.returncode, healthy.stdout.startswith("healthy")) == (0, True)
        listed = rota_command("workers", "list", "--url", "sqlite:///shop.db", cwd=shop)
        assert "front-desk-" in listed.stdout


def test_a_running_job_is_cancelled(shop: Path) -> None:
    job = enqueue("nap", '{"seconds": 60}')
    with started(*WORKER, cwd=shop):
        running(job)
        result = CliRunner().invoke(root, ["jobs", "cancel", job])
        assert "requested to stop" in result.stdout
        eventually(lambda: state(job) == "cancelled", "the job stops")


# --- several processes ---------------------------------------------------------------------------


def test_a_childs_command_line_repeats_the_options_but_never_the_url() -> None:
    flags = {"queues": ("a", "b"), "burst": True, "max_jobs": 3, "no_scheduler": False, "log_level": "info"}
    words = command(flags, "shop:app")
    assert words[2:] == [
        "rota", "worker", "--app", "shop:app",
        "--queues", "a,b", "--burst", "--max-jobs", "3", "--log-level", "info",
    ]  # fmt: skip


def test_several_processes_share_a_burst_on_the_given_store(shop: Path) -> None:
    jobs = [enqueue("add", '{"a": 1, "b": 2}') for _ in range(4)]
    os.rename(shop / "shop.db", shop / "other.db")
    done = rota_command(*WORKER, "--processes", "2", "--burst", "--url", "sqlite:///other.db", cwd=shop)
    assert done.returncode == 0
    assert "in each of 2 processes" in done.stderr
    items = read_json("jobs", "list", "--url", "sqlite:///other.db", "--state", "succeeded", cwd=shop)[
        "items"
    ]
    assert sorted(job["id"] for job in items) == sorted(jobs)


def test_processes_are_replaced_after_their_maximum_of_jobs(shop: Path) -> None:
    jobs = [enqueue("add", '{"a": 1, "b": 2}') for _ in range(7)]
    done = rota_command(*WORKER, "--processes", "2", "--max-jobs", "2", "--burst", cwd=shop)
    assert done.returncode == 0
    assert {state(job) for job in jobs} == {"succeeded"}
    assert "has run its --max-jobs; starting another" in done.stderr
    assert "died" not in done.stderr


def test_a_supervisor_restarts_dead_workers_and_drains_the_others(shop: Path) -> None:
    with started(*WORKER, "--processes", "2", cwd=shop) as supervisor:
        first = eventually(lambda: found if len(found := workers()) == 2 else None, "two workers are up")
        victim = first[0]["pid"]
        os.kill(victim, signal.SIGKILL)
        eventually(
            lambda: {w["pid"] for w in workers()} - {w["pid"] for w in first}, "the dead one is replaced"
        )
        assert "died (SIGKILL); restarting" in said(shop)
        job = enqueue("nap", '{"seconds": 1}')
        running(job)
        supervisor.send_signal(signal.SIGINT)
        assert supervisor.wait(20) == 0
    assert state(job) == "succeeded"


def test_a_second_signal_passes_through_the_supervisor(shop: Path) -> None:
    job = enqueue("nap", '{"seconds": 60}')
    with started(*WORKER, "--processes", "2", cwd=shop) as supervisor:
        running(job)
        supervisor.send_signal(signal.SIGTERM)
        eventually(lambda: said(shop).count("SIGTERM: no new jobs") >= 2, "the signal arrives")
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(20) == 1
    assert state(job) == "queued"


def test_a_supervisor_kills_workers_that_do_not_stop() -> None:
    deaf = "import os, signal; signal.signal(15, signal.SIG_IGN); os.write(1, b'deaf\\n'); signal.pause()"
    supervise = (
        "import asyncio, os, sys; from rota.cli.parts.supervisor import Supervisor; "
        f"workers = Supervisor(2, [sys.executable, '-c', {deaf!r}], os.environ, patience_s=0.5); "
        "sys.exit(asyncio.run(workers.run()))"
    )
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", supervise], **pipes) as supervisor:
        assert [supervisor.stdout.readline() for _ in range(2)] == ["deaf\n"] * 2
        supervisor.send_signal(signal.SIGTERM)
        _, errors = supervisor.communicate(timeout=20)
    assert supervisor.returncode == 1
    assert errors.count("is killed; its jobs will be rescued") == 2


def test_workers_drain_when_their_supervisor_is_killed(shop: Path) -> None:
    with started(*WORKER, "--processes", "2", cwd=shop) as supervisor:
        eventually(lambda: len(workers()) == 2, "two workers are up")
        supervisor.kill()
        eventually(lambda: not workers(), "both sign off")


def test_an_invalid_configuration_is_not_retried(shop: Path) -> None:
    (shop / "fickle.py").write_text(
        "import os\nfrom rota import Rota\n"
        "if 'ROTA_SUPERVISED' in os.environ: raise RuntimeError('not here')\n"
        "app = Rota('sqlite:///shop.db')\n@app.task\ndef work() -> None: ...\n"
    )
    done: subprocess.CompletedProcess[str] = rota_command(
        "worker", "--app", "fickle", "--log-format", "text", "--processes", "2", cwd=shop
    )
    assert done.returncode == 2
    assert done.stderr.count("RuntimeError: not here") == 2
