"""The whole terminal: the alternate screen and single keys; restored however the block ends."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

import click

from ...terminal.text import coloured

# alternate screen, no cursor, no wrapping; and back
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
KEYS = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[Z": "backtab", "\x1b": "esc",
    "\t": "tab", "\r": "enter", "\n": "enter",
}  # fmt: skip
_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


def usable() -> bool:
    """Whether stdin and stdout are a terminal that understands control sequences."""
    try:
        import termios  # noqa: F401
    except ImportError:  # Windows
        return False
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def keys(data: bytes) -> list[str]:
    """The keys pressed, by name; letters and unknown sequences stay as they are."""
    return [KEYS.get(found, found) for found in _KEY.findall(data.decode(errors="replace"))]


class FullScreen:
    """A context manager that takes over the terminal."""

    def __init__(self) -> None:
        self.keyboard, self._display = sys.stdin.fileno(), sys.stdout.fileno()
        self._before: list[Any] = []

    def __enter__(self) -> FullScreen:
        self.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def enter(self) -> None:
        import termios
        import tty

        self._before = termios.tcgetattr(self.keyboard)
        tty.setcbreak(self.keyboard)
        self._write(ENTER)

    def leave(self) -> None:
        import termios

        with suppress(OSError, termios.error):  # the terminal may be gone: then there is nothing to restore
            self._write(LEAVE)
            termios.tcsetattr(self.keyboard, termios.TCSAFLUSH, self._before)

    def size(self) -> tuple[int, int]:
        found = os.get_terminal_size(self._display)
        return found.columns or 80, found.lines or 24

    def paint(self, lines: Sequence[str]) -> None:
        """Draw over the previous picture, without flicker."""
        shown = lines if coloured() else [click.unstyle(line) for line in lines]
        self._write("\x1b[H" + "\r\n".join(f"\x1b[K{line}" for line in shown) + "\x1b[J")

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
