"""The command line in a shell: ``--watch`` on a terminal, completion, and listings as JSON."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from cli.command import DEADLINE_S, environment, make_shop, rota_command
from cli.fake_server import ME, answering, problem, reply
from rota.cli.root import root

LISTINGS = (
    "jobs list", "schedules list", "runs list", "calendars list", "workers list", "queues list", "tasks list",
    "tenants list", "limits list", "gates list", "audit list", "token list", "users list",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_URL", "sqlite:///shop.db")
    return tmp_path


# --- watch ---------------------------------------------------------------------------------------


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, folder: Path, *args: str, **env: str) -> None:
        self._leader, follower = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rota", *args], cwd=folder, start_new_session=True,
            stdin=follower, stdout=follower, stderr=follower,
            env=environment(TERM="xterm", ROTA_URL="sqlite:///shop.db", COLUMNS="100", LINES="20", **env),
        )  # fmt: skip
        os.close(follower)
        self.seen = ""

    def until(self, words: str) -> None:
        """Read on until the words have come."""
        deadline = time.monotonic() + DEADLINE_S
        while words not in self.seen:
            ready, _, _ = select.select([self._leader], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"never said {words!r}: {self.seen[-500:]!r}"
            self.seen += os.read(self._leader, 65536).decode()

    def end(self) -> int:
        """Ctrl-C; its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.close()

    def close(self) -> int:
        try:
            return self.process.wait(DEADLINE_S)
        finally:
            self.process.kill()
            os.close(self._leader)


def test_a_watched_list_is_redrawn_until_ctrl_c(folder: Path) -> None:
    terminal = Terminal(folder, "jobs", "list", "--watch", "0.2")
    terminal.until("No jobs yet")
    rota_command("jobs", "enqueue", "add", "--url", "sqlite:///shop.db", cwd=folder)
    terminal.until("queued")
    terminal.seen = ""
    terminal.until("queued")
    assert "\x1b[H" in terminal.seen and "\x1b[2J" not in terminal.seen
    assert "Every 0.2 s. Press Ctrl-C to stop." in terminal.seen
    assert terminal.end() == 0


def test_a_watch_survives_an_unavailable_store(folder: Path) -> None:
    is_away = threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        told = ME if request.path.endswith("/me") else {"items": [], "next": None}
        (problem(503, "store_unavailable") if is_away.is_set() else reply(200, msgspec.json.encode(told)))(
            request
        )

    with answering(answer) as (url, _):
        terminal = Terminal(folder, "jobs", "list", "--watch", "0.2", ROTA_API=url, ROTA_TOKEN="x")
        terminal.until("No jobs yet")
        is_away.set()
        terminal.until("Retrying")
        is_away.clear()
        terminal.seen = ""
        terminal.until("No jobs yet")
        assert terminal.end() == 0
        is_away.set()
        never = Terminal(folder, "jobs", "list", "--watch", ROTA_API=url, ROTA_TOKEN="x")
        never.until("rota: as it is")
        assert never.close() == 3


@pytest.mark.parametrize("words", [*LISTINGS, "stats"])
def test_a_watch_needs_a_terminal(folder: Path, words: str) -> None:
    for flag in (["--watch"], ["--watch", "3"]):
        result = CliRunner().invoke(root, [*words.split(), *flag])
        assert (result.exit_code, "--watch needs a terminal" in result.stderr) == (2, True), result.output


def test_a_watch_has_a_shortest_interval(folder: Path) -> None:
    result = CliRunner().invoke(root, ["stats", "--watch", "0.01"])
    assert (result.exit_code, "--watch" in result.stderr) == (2, True)


def test_a_bulk_action_shows_progress_on_a_terminal(folder: Path) -> None:
    for _ in range(3):
        assert CliRunner().invoke(root, ["jobs", "enqueue", "add"]).exit_code == 0
    terminal = Terminal(folder, "jobs", "cancel", "--task", "add", "--yes")
    terminal.until("3 jobs cancelled.")
    assert "100%" in terminal.seen
    assert terminal.close() == 0


# --- json ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", LISTINGS)
def test_every_list_as_json_has_items_and_next(folder: Path, words: str) -> None:
    result = CliRunner().invoke(root, [*words.split(), "--json"])
    assert result.exit_code == 0, result.output
    told = msgspec.json.decode(result.stdout)
    assert list(told) == ["items", "next"] and isinstance(told["items"], list)


def test_every_command_that_lists_is_in_these_tests() -> None:
    context = click.Context(root)
    groups = [(name, root.get_command(context, name)) for name in root.list_commands(context)]
    found = {
        f"{name} list"
        for name, group in groups
        if isinstance(group, click.Group) and "list" in group.commands
    }
    assert found - {"config list"} == set(LISTINGS)  # of settings there are no pages


# --- completion ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_printed(shell: str, tmp_path: Path) -> None:
    done = rota_command("completion", shell, cwd=tmp_path)
    assert done.returncode == 0
    assert "_ROTA_COMPLETE" in done.stdout
    if path := shutil.which(shell):
        checked = subprocess.run([path, "-n"], input=done.stdout, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


def complete(tmp_path: Path, words: str) -> list[str]:
    """What a shell is offered after these words; the last may be incomplete."""
    typed = words.split(" ")
    done = rota_command(
        cwd=tmp_path, _ROTA_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(len(typed) - 1)
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_options_and_choices_are_completed(tmp_path: Path) -> None:
    assert complete(tmp_path, "rota sched") == ["schedules"]
    assert complete(tmp_path, "rota jobs re") == ["retry"]
    assert "--not-task" in complete(tmp_path, "rota jobs list --not")
    assert complete(tmp_path, "rota jobs list --state f") == ["failed"]
    assert complete(tmp_path, "rota completion ") == ["bash", "zsh", "fish"]


def test_an_unknown_shell_is_a_usage_error(tmp_path: Path) -> None:
    done = rota_command("completion", "cmd", cwd=tmp_path)
    assert (done.returncode, "'bash', 'zsh', 'fish'" in done.stderr) == (2, True)
