"""Which process this is: whatever may be used after a fork wants to know, and to ask the system is dear."""

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
