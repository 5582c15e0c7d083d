"""``rota jobs``: enqueue, list, show, retry, cancel; and that hostile text stays text."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.command import environment, make_shop, read_json, rota_command
from rota import Rota
from rota.cli.root import root

HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202eevil\r\nforged line"
UNKNOWN = "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the app, the current one, in which the command line runs within this process."""
    make_shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_URL", "sqlite:///shop.db")
    return tmp_path


def invoke(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(root, args, input=stdin)


def as_json(*args: str) -> Any:
    return msgspec.json.decode(invoke(*args, "--json").stdout)


def enqueue(*args: str) -> str:
    result = invoke("jobs", "enqueue", *args)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def work(folder: Path) -> None:
    assert rota_command("worker", "--app", "shop:app", "--burst", cwd=folder).returncode == 0


# --- enqueue -------------------------------------------------------------------------------------


def test_every_flag_of_enqueue_reaches_the_job(folder: Path) -> None:
    job = as_json(
        "jobs", "enqueue", "add", "--payload", '{"a": 1}', "--queue", "mail", "--priority", "7", "--run-at",
        "2099-01-01T08:00:00+02:00", "--key", "k", "--on-conflict", "raise", "--tenant", "acme",
        "--max-attempts", "9", "--timeout", "1m", "--tag", "x", "--tag", "y",
    )  # fmt: skip
    stored = as_json("jobs", "show", job["id"])
    expected = {
        "task": "add", "payload": {"a": 1}, "queue": "mail", "priority": 7,
        "run_at": "2099-01-01T06:00:00Z", "key": "k", "tenant": "acme", "max_attempts": 9, "tags": ["x", "y"],
        "state": "queued", "origin": "api",
    }  # fmt: skip
    assert {name: stored[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("args", "flag"),
    [
        (["--payload", "{oops"], "--payload"),
        (["--payload", "[1]"], "--payload"),
        (["--payload", "@missing.json"], "--payload"),
        (["--queue", ""], "--queue"),
        (["--priority", "99999999999"], "--priority"),
        (["--delay", "soon"], "--delay"),
        (["--delay", ""], "--delay"),
        (["--run-at", "tomorrow"], "--run-at"),
        (["--run-at", "2030-01-01T08:00:00"], "--run-at"),
        (["--delay", "5", "--run-at", "2030-01-01T08:00Z"], "--run-at"),
        (["--key", "a\x1bb"], "--key"),
        (["--on-conflict", "explode", "--key", "k"], "--on-conflict"),
        (["--on-conflict", "raise"], "--key"),
        (["--tenant", "x" * 201], "--tenant"),
        (["--max-attempts", "0"], "--max-attempts"),
        (["--timeout", "0"], "--timeout"),
        (["--tag", ""], "--tag"),
    ],
)
def test_a_bad_flag_is_named_and_nothing_is_sent(folder: Path, args: list[str], flag: str) -> None:
    result = invoke("jobs", "enqueue", "add", *args)
    assert result.exit_code == 2
    assert flag in result.stderr
    assert "\x1b" not in result.stderr
    assert not (folder / "shop.db").exists()


def test_a_payload_is_read_from_a_file_and_from_stdin(folder: Path) -> None:
    (folder / "payload.json").write_text('{"a": 1}')
    first = enqueue("add", "--payload", "@payload.json")
    second = invoke("jobs", "enqueue", "add", "--payload", "-", stdin='{"a": 2}').stdout.strip()
    assert [as_json("jobs", "show", j)["payload"] for j in (first, second)] == [{"a": 1}, {"a": 2}]


def test_a_payload_that_does_not_fit_the_apps_task_is_rejected(folder: Path) -> None:
    done = rota_command("--app", "shop", "jobs", "enqueue", "add", "--payload", '{"a": 1}', cwd=folder)
    assert (done.returncode, "--payload" in done.stderr, "'b'" in done.stderr) == (2, True, True)
    done = rota_command("--app", "shop", "jobs", "enqueue", "ad", cwd=folder)
    assert (done.returncode, "did you mean 'add'?" in done.stderr) == (0, True)


def test_options_of_the_apps_task_apply(folder: Path) -> None:
    (folder / "mail.py").write_text(
        "from rota import Rota\napp = Rota('sqlite:///shop.db')\n"
        "@app.task(queue='mail', tags=['x'], tenant='acme', priority=3)\nasync def send(): ...\n"
    )
    done = rota_command("--app", "mail", "jobs", "enqueue", "send", "--json", cwd=folder)
    job = msgspec.json.decode(done.stdout)
    assert (job["queue"], job["tags"], job["tenant"], job["priority"]) == ("mail", ["x"], "acme", 3)


def test_a_taken_key_returns_the_job_or_fails(folder: Path) -> None:
    first = enqueue("add", "--key", "k")
    assert enqueue("add", "--key", "k") == first
    refused = invoke("jobs", "enqueue", "add", "--key", "k", "--on-conflict", "raise")
    assert (refused.exit_code, first in refused.stderr) == (1, True)


def test_waiting_prints_the_output_and_fails_with_the_job(folder: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-m", "rota", "worker", "--app", "shop", "--max-jobs", "2", "--log-level", "error"],
        cwd=folder, env=environment(),
    )  # fmt: skip
    try:
        done = invoke("jobs", "enqueue", "add", "--payload", '{"a": 2, "b": 3}', "--wait")
        assert (done.exit_code, done.stdout) == (0, "5\n")
        failed = invoke(
            "jobs", "enqueue", "boom", "--payload", '{"text": "no luck"}', "--max-attempts", "1", "--wait"
        )
        assert (failed.exit_code, "no luck" in failed.stderr) == (1, True)
        assert worker.wait(30) == 0
    finally:
        worker.kill()
        worker.wait()


def test_a_wait_that_times_out_ends_with_a_hint(folder: Path) -> None:
    late = invoke("jobs", "enqueue", "add", "--wait", "--wait-timeout", "0.1")
    assert (late.exit_code, "did not finish within" in late.stderr) == (1, True)


# --- list and show -------------------------------------------------------------------------------


def test_an_empty_list_shows_the_first_step(folder: Path) -> None:
    assert "rota jobs enqueue TASK" in invoke("jobs", "list").stdout
    assert "No job matches" in invoke("jobs", "list", "--queue", "mail").stdout
    assert as_json("jobs", "list") == {"items": [], "next": None}


def test_filters_and_pages_find_every_job_once(folder: Path) -> None:
    ids = [enqueue("add", "--queue", q, "--tag", f"t{q}", "--tenant", q) for q in ("a", "b", "a", "b", "a")]
    assert [j["id"] for j in as_json("jobs", "list", "--queue", "a")["items"]] == [ids[4], ids[2], ids[0]]
    assert len(as_json("jobs", "list", "--tag", "tb")["items"]) == 2
    page = as_json("jobs", "list", "--tenant", "b", "--state", "queued", "--state", "failed")
    assert len(page["items"]) == 2
    assert as_json("jobs", "list", "--state", "failed")["items"] == []
    seen, cursor = [], []
    while True:
        page = as_json("jobs", "list", "--limit", "2", *cursor)
        seen += [job["id"] for job in page["items"]]
        if page["next"] is None:
            break
        cursor = ["--cursor", page["next"]]
    assert seen == ids[::-1]


def test_a_full_page_shows_the_command_for_the_next(folder: Path) -> None:
    ids = [enqueue("add") for _ in range(3)]
    result = invoke("jobs", "list", "--task", "add", "--limit", "2")
    more = result.stderr.strip()
    assert more.startswith("More: rota jobs list --task add --limit 2 --cursor ")
    rest = invoke(*more.removeprefix("More: rota ").split())
    assert ids[0] in rest.stdout and ids[1] not in rest.stdout


def test_an_unknown_cursor_does_no_harm(folder: Path, migrated_postgres_url: str) -> None:
    for url in ("sqlite:///shop.db", migrated_postgres_url):
        result = invoke("jobs", "list", "--url", url, "--cursor", "no'cursor")
        assert result.exit_code in (0, 2), result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)


def test_show_prints_all_facts_of_a_finished_job(folder: Path) -> None:
    job = enqueue("nap", "--payload", '{"seconds": 0}', "--tag", "siesta")
    failed = enqueue("boom", "--payload", '{"text": "no luck"}', "--max-attempts", "1")
    work(folder)
    text = invoke("jobs", "show", job).stdout
    for words in (
        "succeeded",
        "siesta",
        '"seconds": 0',
        '"rested"',
        "40% half asleep",
        "lying down",
        "1 of 3",
    ):
        assert words in text
    text = invoke("jobs", "show", failed.upper()).stdout
    for words in ("failed", "ValueError: no luck", "Traceback (most recent call last)", "1 of 1"):
        assert words in text
    assert as_json("jobs", "show", failed)["attempts"][0]["error"]["type"] == "ValueError"
    assert "ValueError: no luck" in invoke("jobs", "list", "--state", "failed").stdout


def test_show_explains_why_no_worker_can_run_a_job(folder: Path) -> None:
    assert "No worker is running" in invoke("jobs", "show", enqueue("add")).stdout


def test_an_invalid_id_is_a_usage_error_and_an_unknown_one_a_failure(folder: Path) -> None:
    for command in ("show", "retry", "cancel"):
        assert invoke("jobs", command, "abc").exit_code == 2
        missing = invoke("jobs", command, UNKNOWN)
        assert (missing.exit_code, UNKNOWN in missing.stderr) == (1, True)


def test_list_stats_and_workers_print_json(folder: Path) -> None:
    enqueue("add", "--payload", '{"a": 1, "b": 2}')
    assert len(read_json("--url", "sqlite:///shop.db", "jobs", "list", cwd=folder)["items"]) == 1
    stats = read_json("--url", "sqlite:///shop.db", "stats", cwd=folder)
    assert (stats["queued"], stats["queues"]["default"]["due"], stats["unserved"]) == (1, 1, {"add": 1})
    assert read_json("--url", "sqlite:///shop.db", "workers", "list", cwd=folder) == {
        "items": [],
        "next": None,
    }


# --- retry and cancel ----------------------------------------------------------------------------


def test_one_job_that_cannot_be_cancelled_does_not_stop_the_others(folder: Path) -> None:
    one, two = enqueue("add"), enqueue("add")
    assert invoke("jobs", "cancel", one, "--reason", "not today").exit_code == 0
    result = invoke("jobs", "cancel", one, two)
    assert result.exit_code == 1
    assert f"{two}  cancelled" in result.stdout
    assert one in result.stderr and "which is cancelled" in result.stderr
    assert as_json("jobs", "show", one)["error"]["message"] == "not today"


def test_one_invalid_id_prevents_all_changes(folder: Path) -> None:
    job = enqueue("add")
    assert invoke("jobs", "cancel", job, "nonsense").exit_code == 2
    assert as_json("jobs", "show", job)["state"] == "queued"


def test_a_failed_job_is_retried(folder: Path) -> None:
    job = enqueue("boom", "--payload", '{"text": "x"}', "--max-attempts", "1")
    work(folder)
    result = invoke("jobs", "retry", job)
    assert (result.exit_code, f"{job}  queued  due now" in result.stdout) == (0, True)
    assert invoke("jobs", "retry", job).exit_code == 1


# --- hostile text --------------------------------------------------------------------------------


def hostile_job() -> str:
    """A job whose payload, error and log carry whatever an attacker may send."""
    app = Rota("sqlite:///shop.db")

    @app.task(max_attempts=1)
    async def evil(text: str) -> None:
        raise ValueError(text)

    async def go() -> str:
        job = await app.enqueue("evil", {"text": HOSTILE})
        async with app.running(burst=True):
            with pytest.raises(Exception, match="owned"):
                await job.result(20)
        await app.close()
        return job.id

    return asyncio.run(go())


def test_hostile_text_is_shown_escaped(folder: Path) -> None:
    job = hostile_job()
    for args in (
        ["jobs", "list"],
        ["jobs", "show", job],
        ["jobs", "show", job, "--json"],
        ["jobs", "list", "--json"],
    ):
        text = invoke(*args).stdout
        assert "owned" in text
        assert text.replace("\n", "").isprintable(), args
    assert as_json("jobs", "show", job)["payload"] == {"text": HOSTILE}


def on_a_terminal(folder: Path, columns: int, *args: str, **env: str) -> str:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    child_env = environment(TERM="xterm", **env)
    child_env.pop("COLUMNS", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "rota", *args], cwd=folder, env=child_env, stdout=follower, stderr=follower
    )
    os.close(follower)
    received = b""
    try:
        while chunk := os.read(leader, 65536):
            received += chunk
    except OSError:  # the child's end is closed
        pass
    os.close(leader)
    assert process.wait(30) == 0
    return received.decode()


def test_a_terminal_gets_colours_and_lines_that_fit_but_no_hostile_sequence(folder: Path) -> None:
    job = hostile_job()
    text = on_a_terminal(folder, 100, "jobs", "list", "--url", "sqlite:///shop.db")
    assert job in text
    assert "\x1b[31m✗ failed\x1b[0m" in text
    assert "\x1b]" not in text and "\x07" not in text and "\x9b" not in text and "\u202e" not in text
    plain = on_a_terminal(folder, 100, "jobs", "list", "--url", "sqlite:///shop.db", NO_COLOR="1")
    assert "\x1b" not in plain and "✗ failed" in plain
    assert max(map(len, plain.splitlines())) <= 100
