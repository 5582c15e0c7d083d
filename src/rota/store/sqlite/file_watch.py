"""Hearing of writes to a file without asking again and again: Linux's inotify.

Owns one thread that sleeps in the kernel. A write is heard when it begins, before its commit can be
seen, and our own writes are heard too: it is a reason to look, never more. Where there is no inotify
(another system, no instance left, no such file) there is no watch, and the caller must poll.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from struct import Struct
from threading import Event, Thread

from ..native_threads import are_greenlets

IN_MODIFY = 0x2
STOP_S = 10.0
EVENT = Struct("iIII")  # whose, what, and two that matter for directories only


class FileWatch:
    """Calls ``heard`` once for each time it was armed, from a thread of its own, after a write."""

    def __init__(self, inotify: int, forget: Callable[[], object], heard: Callable[[], None]) -> None:
        self._inotify = inotify
        self._forget = forget  # the kernel then says so, which ends the thread
        self._heard = heard
        self._armed = Event()
        self._ended = False
        self._thread = Thread(target=self._run, name="rota-sqlite-watch", daemon=True)
        self._thread.start()

    def arm(self) -> bool:
        """Listen for the next write, or one since the last; False if the file is gone."""
        self._armed.set()
        return not self._ended

    def close(self) -> None:
        if not self._ended:
            self._forget()
        self._armed.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        try:
            while not self._ended:
                self._armed.wait()
                events = EVENT.iter_unpack(os.read(self._inotify, 100 * EVENT.size))
                self._armed.clear()
                if any(what != IN_MODIFY for _, what, _, _ in events):
                    self._ended = True  # the file is gone, or we were closed
                self._heard()
        except OSError:
            self._ended = True
        finally:
            os.close(self._inotify)


def watch(path: str, heard: Callable[[], None]) -> FileWatch | None:
    if _libc is None or are_greenlets():
        return None
    inotify = _libc.inotify_init1(os.O_CLOEXEC)
    if inotify < 0:
        return None
    mark = _libc.inotify_add_watch(inotify, os.fsencode(path), IN_MODIFY)
    if mark < 0:
        os.close(inotify)
        return None
    return FileWatch(inotify, partial(_libc.inotify_rm_watch, inotify, mark), heard)


def _load() -> ctypes.CDLL | None:
    if sys.platform == "linux":
        with suppress(OSError):
            libc = ctypes.CDLL(None)
            if hasattr(libc, "inotify_init1"):
                return libc
    return None


_libc = _load()
