"""A terminal session: ``rota`` on a real pty, keys typed and the screen read."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from cli.command import DEADLINE_S, environment


class TerminalSession:
    """Runs ``rota`` on a terminal of its own; ``seen`` is all it wrote."""

    def __init__(self, *args: str, cwd: Path, columns: int = 100, lines: int = 30, **env: str) -> None:
        self._leader, self._follower = pty.openpty()
        self.resize(columns, lines)
        self.modes_before = self.modes()
        wanted = environment(TERM="xterm", **env)
        for name in ("COLUMNS", "LINES"):
            wanted.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rota", *args], cwd=cwd, env=wanted, stdin=self._follower,
            stdout=self._follower, stderr=self._follower, start_new_session=True,
        )  # fmt: skip
        self.seen = ""

    def __enter__(self) -> TerminalSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._leader)
        os.close(self._follower)

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self._follower)

    def is_stopped(self) -> bool:
        return bool(os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT))

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._follower, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize_now(self, columns: int, lines: int) -> None:
        """While it runs: the terminal is not its controlling one, so that we tell it ourselves."""
        self.resize(columns, lines)
        self.process.send_signal(signal.SIGWINCH)

    def type(self, text: str) -> None:
        os.write(self._leader, text.encode())

    def read_until(self, text: str) -> str:
        """What was written from now on until the text was; fails at a deadline."""
        start = len(self.seen)
        deadline = time.monotonic() + DEADLINE_S
        while text not in self.seen[start:]:
            assert time.monotonic() < deadline, f"never seen: {text!r} in {self.seen[start:][-2000:]!r}"
            self._read(0.2)
        return self.seen[start:]

    def end(self) -> int:
        """Its exit code, once it has written everything."""
        deadline = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"still running: {self.seen[-2000:]!r}"
            self._read(0.1)
        self._read(0)
        return self.process.returncode

    def _read(self, reconnect: float) -> None:
        while select.select([self._leader], [], [], reconnect)[0]:
            self.seen += os.read(self._leader, 65536).decode(errors="replace")
            reconnect = 0
