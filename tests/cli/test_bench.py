"""``rota bench``: takes figures on each store, leaves nothing, touches nothing that is not its own."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cli.command import environment, eventually, make_shop, rota_command, started
from rota import Rota

SMALL = ("bench", "--jobs", "100")


async def counts(url: str) -> dict[str, int]:
    app = Rota(url)
    try:
        found = await app.stats()
        return {"queued": found["queued"], "running": found["running"], "succeeded": found["succeeded"]}
    finally:
        await app.close()


async def test_every_measurement_runs_and_leaves_no_jobs(app_url: str, tmp_path: Path) -> None:
    done = rota_command(*SMALL, "--json", "--workers", "2", "--url", app_url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = msgspec.json.decode(done.stdout)
    assert told["jobs"] == 100 and told["workers"] == 2
    assert list(told["measures"]) == ["single", "concurrent", "bulk", "drain", "pickup"]
    for name, figures in told["measures"].items():
        assert all(value > 0 for value in figures.values()), name
        assert ("jobs_s" in figures) != (name == "pickup")
    assert await counts(app_url) == {"queued": 0, "running": 0, "succeeded": 0}


async def test_other_jobs_need_confirmation_and_are_not_changed(app_url: str, tmp_path: Path) -> None:
    app = Rota(app_url)
    kept = await app.enqueue("someone.elses", {"n": 1})
    await app.close()
    asked = rota_command(*SMALL, "--measure", "drain", "--url", app_url, cwd=tmp_path, stdin="n\n")
    assert asked.returncode == 1
    assert "has 1 job" in asked.stderr and "nothing was changed" in asked.stderr
    done = rota_command(*SMALL, "--measure", "drain", "--yes", "--url", app_url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert await counts(app_url) == {"queued": 1, "running": 0, "succeeded": 0}
    app = Rota(app_url)
    assert (await app.job(kept.id)).attempt == 0
    await app.close()


def test_only_the_selected_measurements_run(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'rota.db'}"
    done = rota_command(*SMALL, "--measure", "bulk", "--measure", "single", "--url", url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["MEASUREMENT", "bulk", "single"]
    assert "A single enqueue costs a round trip and a commit" in lines[6]
    assert done.stderr == ""  # no bar off a terminal


def test_the_store_of_an_app_is_measured_without_its_tasks(tmp_path: Path) -> None:
    make_shop(tmp_path)
    done = rota_command(*SMALL, "--measure", "single", "--app", "shop:app", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "shop.db" in done.stdout


def test_an_in_memory_store_cannot_be_drained(tmp_path: Path) -> None:
    done = rota_command(*SMALL, "--measure", "drain", "--url", "sqlite://:memory:", cwd=tmp_path)
    assert done.returncode == 1
    assert "cannot be shared with worker processes" in done.stderr


@pytest.mark.parametrize("wrong", [("--jobs", "0"), ("--measure", "speed"), ("--workers", "0")])
def test_an_invalid_option_is_named(tmp_path: Path, wrong: tuple[str, str]) -> None:
    done = rota_command("bench", *wrong, cwd=tmp_path)
    assert done.returncode == 2
    assert wrong[0] in done.stderr


def test_an_unreachable_store_is_reported_in_one_line(tmp_path: Path) -> None:
    done = rota_command(*SMALL, "--url", "postgresql://127.0.0.1:1/nothing", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("rota: ") and "Traceback" not in done.stderr


async def test_an_interrupted_run_cleans_up(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'rota.db'}"
    command = ("bench", "--jobs", "1000000", "--measure", "concurrent", "--url", url)
    with started(*command, cwd=tmp_path) as process:
        eventually((tmp_path / "rota.db").exists, "the run begins")
        app = Rota(url)
        while not (await app.stats())["queued"]:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        await app.close()
        process.wait(timeout=30)
    assert await counts(url) == {"queued": 0, "running": 0, "succeeded": 0}


def test_a_terminal_shows_a_progress_bar(tmp_path: Path) -> None:
    mine, theirs = pty.openpty()
    command = [sys.executable, "-m", "rota", *SMALL, "--measure", "single", "--url", "sqlite://:memory:"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(TERM="xterm"), stdout=subprocess.PIPE, stderr=theirs,
        timeout=30, check=False,
    )  # fmt: skip
    os.close(theirs)
    shown = os.read(mine, 1 << 16).decode()
    os.close(mine)
    assert done.returncode == 0, shown
    assert "single" in shown and "100%" in shown
