"""``rota worker`` as a service of systemd: what it sends to the socket that systemd would listen on."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.command import eventually, make_shop, said, started
from rota import Rota
from rota.runtime import systemd

WORKER = ("worker", "--app", "shop:app", "--log-format", "text")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rota-") as name:  # a socket's path must be short
        yield Path(name)


@pytest.fixture
def socket_of_systemd(folder: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(folder / "notify"))
        listener.settimeout(30)
        yield listener


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_shop(tmp_path)


def receive(socket_of_systemd: socket.socket) -> list[str]:
    return socket_of_systemd.recv(4096).decode().splitlines()


def rest(socket_of_systemd: socket.socket) -> list[str]:
    """The messages received by now."""
    socket_of_systemd.setblocking(False)
    seen: list[str] = []
    try:
        while True:
            seen += receive(socket_of_systemd)
    except BlockingIOError:
        return seen


def receive_until(socket_of_systemd: socket.socket, word: str) -> list[str]:
    """The messages up to the first that has the word."""
    seen: list[str] = []
    while word not in seen:
        seen += receive(socket_of_systemd)
    return seen


@pytest.mark.parametrize("processes", [1, 2])
def test_a_worker_notifies_systemd_of_ready_watchdog_and_stopping(
    shop: Path, socket_of_systemd: socket.socket, processes: int
) -> None:
    env = {"NOTIFY_SOCKET": socket_of_systemd.getsockname(), "WATCHDOG_USEC": "200000"}
    with started(*WORKER, "--processes", str(processes), cwd=shop, **env) as worker:
        first = receive_until(socket_of_systemd, "READY=1")
        assert "STOPPING=1" not in first
        alive = receive_until(socket_of_systemd, "WATCHDOG=1")
        alive += receive_until(socket_of_systemd, "WATCHDOG=1")
        assert alive.count("READY=1") == 0 and alive.count("WATCHDOG=1") >= 2
        eventually(lambda: said(shop).count(" started: ") == processes, "all workers are up")
        worker.send_signal(signal.SIGTERM)
        assert any(
            "waiting for the running ones" in line for line in receive_until(socket_of_systemd, "STOPPING=1")
        )
        assert worker.wait(20) == 0
    assert "READY=1" not in rest(socket_of_systemd)


def test_a_worker_with_a_blocked_loop_sends_no_watchdog_ping(
    shop: Path, socket_of_systemd: socket.socket
) -> None:
    with (shop / "shop.py").open("a") as file:
        file.write("\nimport os, signal\n@app.task\nasync def block() -> None:\n")
        file.write("    open('blocked', 'w').close()\n    signal.pause()\n")
    env = {"NOTIFY_SOCKET": socket_of_systemd.getsockname(), "WATCHDOG_USEC": "100000"}
    with started(*WORKER, cwd=shop, **env):
        receive_until(socket_of_systemd, "WATCHDOG=1")
        _enqueue(shop, "block")
        eventually(lambda: (shop / "blocked").exists(), "the task blocks the loop")
        rest(socket_of_systemd)
        socket_of_systemd.settimeout(1.0)  # ten times the time within which it would have reported
        with pytest.raises(TimeoutError):
            receive(socket_of_systemd)


def _enqueue(shop: Path, task: str) -> None:
    app = Rota(f"sqlite:///{shop / 'shop.db'}")
    app.enqueue_sync(task)
    app.portal.close()


# --- the words themselves ------------------------------------------------------------------------


def test_without_systemd_nothing_is_sent(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not systemd.is_wanted() and not systemd.ready()
    monkeypatch.setenv("NOTIFY_SOCKET", str(folder / "missing"))
    assert systemd.is_wanted() and not systemd.ready()
    monkeypatch.setenv("NOTIFY_SOCKET", "relative")
    assert not systemd.notify("READY=1")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract sockets")
def test_an_abstract_socket_works_and_a_message_stays_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0rota-{os.getpid()}")
        listener.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@rota-{os.getpid()}")
        assert systemd.ready("fine\nREADY=0")
        assert receive(listener) == ["READY=1", "STATUS=fine READY=0"]


@pytest.mark.parametrize(
    ("usec", "pid", "seconds"),
    [
        ("", "", None), ("0", "", None), ("soon", "", None), ("30000000", "", 15.0),
        ("30000000", "own", 15.0), ("30000000", "1", None),
    ],
)  # fmt: skip
def test_watchdog_pings_are_sent_at_twice_the_required_rate(
    monkeypatch: pytest.MonkeyPatch, usec: str, pid: str, seconds: float | None
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)
    assert systemd.watchdog_s() == seconds


def test_child_processes_do_not_notify_systemd() -> None:
    told = systemd.without({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "PATH": "/bin"})
    assert told == {"PATH": "/bin"}
