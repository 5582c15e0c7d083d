"""The current process id, cached because getpid is a system call, and refreshed after a fork."""

from __future__ import annotations

import os

_pid = os.getpid()


def current_pid() -> int:
    return _pid


def _forked() -> None:
    global _pid
    _pid = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
