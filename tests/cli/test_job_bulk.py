"""``rota jobs`` on many: what will happen is shown first, then done in steps; why, move, delete, filters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.command import environment, eventually, make_shop
from rota import Rota
from rota.cli.parts.progress import progress
from rota.cli.root import root

UNKNOWN = "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


def many(count: int, task: str = "add") -> None:
    """Enqueue ``count`` jobs at once."""
    import asyncio

    async def go() -> None:
        app = Rota("sqlite:///shop.db")

        @app.task(name=task)
        async def any_task(n: int) -> None: ...

        await any_task.enqueue_many([{"n": n} for n in range(count)])
        await app.close()

    asyncio.run(go())


def count(state: str) -> int:
    found: int = as_json("stats")[state]
    return found


# --- which ---------------------------------------------------------------------------------------


def test_each_filter_finds_its_jobs(folder: Path) -> None:
    parent = enqueue("add", "--queue", "mail", "--tag", "x", "--key", "k", "--tenant", "acme")
    other = enqueue("nap")
    for filters in (
        "--task add",
        "--queue mail",
        "--tag x",
        "--key k",
        "--tenant acme",
        "--not-task nap",
        "--not-queue default",
        "--not-task nap --not-task z",
        "--state queued --task add",
    ):
        assert [job["id"] for job in as_json("jobs", "list", *filters.split())["items"]] == [parent], filters
    none = (["--schedule", "s"], ["--parent", parent], ["--worker", "w"], ["--error", "x"])
    for filters in (*none, ["--concurrency-key", "openai"]):
        assert as_json("jobs", "list", *filters)["items"] == [], filters
    assert [job["id"] for job in as_json("jobs", "list", "--since", "1h")["items"]] == [other, parent]
    assert as_json("jobs", "list", "--until", "1h")["items"] == []
    assert as_json("jobs", "list", "--since", "2099-01-01T00:00Z")["items"] == []


def test_a_failed_job_is_found_by_a_text_in_its_error(folder: Path) -> None:
    one, _ = enqueue("add"), enqueue("add")
    invoke("jobs", "cancel", one, "--reason", "provider down")
    assert [job["id"] for job in as_json("jobs", "list", "--error", "provider")["items"]] == [one]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--since", "yesterday"], "--since"),
        (["--until", "2030-01-01"], "--until"),
        (["--state", "broken"], "--state"),
        (["--parent", "abc"], "not a job id"),
        (["--task", "x" * 201], "task"),
        (["--limit", "201"], "--limit"),
        (["--watch"], "--watch"),
    ],
)
def test_a_bad_filter_is_named(folder: Path, args: list[str], words: str) -> None:
    result = invoke("jobs", "list", *args)
    assert (result.exit_code, words in result.stderr) == (2, True), result.output


# --- saying first --------------------------------------------------------------------------------


def test_a_dry_run_shows_a_count_and_a_sample_and_changes_nothing(folder: Path) -> None:
    many(7)
    result = invoke("jobs", "cancel", "--task", "add", "--dry-run")
    assert result.exit_code == 0
    assert "7 live jobs of task add will be cancelled" in result.stdout
    assert result.stdout.count("queued") == 5
    assert "nothing was changed" in result.stdout
    assert as_json("jobs", "cancel", "--task", "add", "--dry-run")["matched"] == 7
    assert count("queued") == 7


def test_bulk_actions_run_after_confirmation(folder: Path) -> None:
    many(1203)
    refused = invoke("jobs", "cancel", "--task", "add", stdin="n\n")
    assert (refused.exit_code, "1,203 live jobs" in refused.stderr) == (1, True)
    assert count("queued") == 1203
    assert "1,203 jobs cancelled" in invoke("jobs", "cancel", "--task", "add", stdin="y\n").stdout
    assert count("cancelled") == 1203
    again = invoke("jobs", "retry", "--state", "cancelled", "--task", "add", "--yes")
    assert (again.exit_code, again.stdout) == (0, "1,203 jobs queued.\n")
    done = as_json("jobs", "delete", "--task", "add", "--yes")
    assert (done["done"], done["refused"], done["stopped"]) == (1203, 0, False)
    assert as_json("jobs", "list")["items"] == []


def test_deleting_more_than_ten_jobs_needs_their_number(folder: Path) -> None:
    many(11)
    for answer in ("y\n", "10\n", ""):
        kept = invoke("jobs", "delete", "--task", "add", stdin=answer)
        assert (kept.exit_code, "This cannot be undone" in kept.stderr) == (1, True)
    assert count("queued") == 11
    assert invoke("jobs", "delete", "--task", "add", stdin="11\n").exit_code == 0
    assert count("queued") == 0


def test_jobs_are_deleted_by_their_ids(folder: Path) -> None:
    one, two = enqueue("add"), enqueue("add")
    assert invoke("jobs", "delete", one, stdin="n\n").exit_code == 1
    result = invoke("jobs", "delete", one, UNKNOWN, two, "--yes")
    assert (result.exit_code, UNKNOWN in result.stderr) == (1, True)
    assert result.stdout == f"{one}  deleted\n{two}  deleted\n"
    assert as_json("jobs", "list")["items"] == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["jobs", "retry"], "no jobs selected"),
        (["jobs", "delete", "--yes"], "no jobs selected"),
        (["jobs", "cancel", UNKNOWN, "--task", "add"], "cannot be combined"),
        (["jobs", "cancel", "--task", "add", "--rate", "fast"], "--rate"),
        (["jobs", "cancel", "--task", "add", "--rate", "0/s"], "--rate"),
        (["jobs", "retry", "--state", "queued", "--yes"], "none of these states"),
    ],
)
def test_a_bulk_action_needs_a_valid_selection(folder: Path, args: list[str], words: str) -> None:
    result = invoke(*args)
    assert (result.exit_code, words in result.stderr) == (2, True), result.output


def test_a_bulk_action_without_matches_does_nothing(folder: Path) -> None:
    result = invoke("jobs", "cancel", "--task", "nope")
    assert (result.exit_code, result.stdout) == (0, "No job matches; nothing to do.\n")


def test_ctrl_c_stops_between_steps_and_the_command_can_continue(folder: Path) -> None:
    many(1000)
    args = ["jobs", "cancel", "--task", "add", "--yes"]
    process = subprocess.Popen(
        [sys.executable, "-m", "rota", *args, "--rate", "20/s"], cwd=folder, text=True,
        env=environment(ROTA_URL="sqlite:///shop.db"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    eventually(lambda: count("cancelled") > 0, "no step was done")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    done = count("cancelled")
    assert process.returncode == 1
    assert f"{done} jobs cancelled" in out
    assert f"stopped after {done} of 1,000" in err
    assert 0 < done < 1000
    assert invoke(*args).stdout == f"{1000 - done} jobs cancelled.\n"


def test_jobs_created_during_the_prompt_are_not_changed(folder: Path) -> None:
    many(3)
    process = subprocess.Popen(
        [sys.executable, "-m", "rota", "jobs", "cancel", "--task", "add"], cwd=folder, text=True,
        env=environment(ROTA_URL="sqlite:///shop.db"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    assert "3 live jobs" in process.stderr.readline()
    late = enqueue("add")
    assert process.communicate("y\n", timeout=30)[0] == "3 jobs cancelled.\n"
    assert as_json("jobs", "show", late)["state"] == "queued"


# --- why and move --------------------------------------------------------------------------------


def test_why_lists_reasons_and_remedies(folder: Path) -> None:
    job = enqueue("add", "--delay", "1h")
    text = invoke("jobs", "why", job).stdout
    for words in (
        "queued",
        "It is not due until",
        "(in 60 min)",
        f"rota jobs update {job} --now",
        "No worker is running",
    ):
        assert words in text.replace("in 1 h", "in 60 min")
    found = as_json("jobs", "why", job)
    assert [reason["code"] for reason in found["reasons"]] == ["due_later", "no_worker"]
    assert invoke("jobs", "why", "abc").exit_code == 2
    assert invoke("jobs", "why", UNKNOWN).exit_code == 1


def test_update_changes_a_queued_job(folder: Path) -> None:
    job = enqueue("add", "--delay", "1h")
    result = invoke("jobs", "update", job, "--now", "--priority", "9", "--queue", "fast")
    assert (result.exit_code, "due now, priority 9, queue fast" in result.stdout) == (0, True), result.output
    stored = as_json("jobs", "show", job)
    assert (stored["priority"], stored["queue"]) == (9, "fast")
    assert datetime.fromisoformat(stored["run_at"]) <= datetime.now(UTC) + timedelta(seconds=5)
    invoke("jobs", "update", job, "--at", "2099-01-01T08:00+02:00")
    assert as_json("jobs", "show", job)["run_at"] == "2099-01-01T06:00:00Z"
    invoke("jobs", "update", job, "--delay", "1h")
    assert datetime.fromisoformat(as_json("jobs", "show", job)["run_at"]) > datetime.now(UTC)
    invoke("jobs", "cancel", job)
    late = invoke("jobs", "update", job, "--now")
    assert (late.exit_code, "which is cancelled" in late.stderr) == (1, True)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "nothing to change"),
        (["--now", "--delay", "0"], "--now and --delay"),
        (["--at", "noon"], "--at"),
        (["--queue", ""], "--queue"),
        (["--priority", "99999999999"], "--priority"),
    ],
)
def test_an_invalid_update_is_rejected_before_anything_is_sent(
    folder: Path, args: list[str], words: str
) -> None:
    result = invoke("jobs", "update", UNKNOWN, *args)
    assert (result.exit_code, words in result.stderr) == (2, True), result.output
    assert not (folder / "shop.db").exists()


# --- audit ---------------------------------------------------------------------------------------


def test_changes_are_audited_with_their_actor(folder: Path) -> None:
    job = enqueue("add")
    invoke("jobs", "cancel", job, "--reason", "not today")
    invoke("jobs", "cancel", job)
    invoke("jobs", "retry", "--task", "add", "--yes")
    invoke("schedules", "create", "--name", "n", "--task", "add", "--every", "5m")
    lines = as_json("audit", "list")["items"]
    assert [(line["action"], line["result"]) for line in reversed(lines)] == [
        ("job.enqueue", "done"), ("job.cancel", "done"), ("job.cancel", "denied"), ("jobs.retry", "done"),
        ("schedule.create", "done"),
    ]  # fmt: skip
    assert {line["via"] for line in lines} == {"cli"}
    assert all("@" in line["actor"] for line in lines)
    assert lines[3]["object"] == f"job:{job}"
    assert os.uname().nodename in lines[0]["actor"]


def test_progress_counts_what_nobody_has_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("retry", None) as tick:
        tick(500)
    assert capsys.readouterr().err == ""  # not a terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("retry", None) as tick:
        tick(500)
        tick(700)
    assert capsys.readouterr().err.split("\r")[1:] == [
        "retry  0 so far", "retry  500 so far", "retry  1,200 so far\n"
    ]  # fmt: skip
