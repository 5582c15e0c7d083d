"""Metrics of the machine: CPU time and memory of process trees, WAL, wait events of the server."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import Self

import psutil  # type: ignore[import-untyped]
import psycopg


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU time of these processes and all their children, including those that have exited."""
    total = 0.0
    for pid in pids:
        for process in _tree(pid):
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
            if process.pid == pid:
                total += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return total


def memory_mb(pids: Iterable[int]) -> float:
    """Memory of the processes and their children, with shared pages counted in proportion if known."""
    total = 0
    for process in (p for pid in pids for p in _tree(pid)):
        try:
            found = process.memory_full_info()
        except psutil.Error:
            continue
        total += getattr(found, "pss", 0) or found.rss
    return total / 1e6


def _tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


class Server:
    """The server behind a URL, with administrator rights. All metrics are 0 for a store without a server."""

    def __init__(self, url: str | None) -> None:
        self._connection = psycopg.connect(url, autocommit=True) if url else None
        self._pid = self._find_pid()

    def number(self, statement: str) -> float:
        if self._connection is None:
            return 0.0
        row = self._connection.execute(statement.encode()).fetchone()
        return float(row[0]) if row and row[0] is not None else 0.0

    def run(self, statement: str) -> None:
        if self._connection is not None:
            self._connection.execute(statement.encode())

    def wal_bytes(self) -> float:
        return self.number("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")

    def cpu_seconds(self) -> float:
        return cpu_seconds([self._pid]) if self._pid else 0.0

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _find_pid(self) -> int | None:
        """The parent of this connection's backend, if it is visible on this machine."""
        backend = int(self.number("SELECT pg_backend_pid()"))
        try:
            process = psutil.Process(backend) if backend else None
            return process.ppid() if process and "postgres" in process.name() else None
        except psutil.Error:
            return None


class WaitEvents:
    """``with WaitEvents(url) as waits``: samples what active backends wait for; see ``waits.shares``."""

    EVERY_S = 0.05
    QUERY = b"""
        SELECT coalesce(wait_event_type || ':' || wait_event, 'CPU') FROM pg_stat_activity
         WHERE state = 'active' AND backend_type = 'client backend' AND pid <> pg_backend_pid()
    """

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._counts: Counter[str] = Counter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        if self._url:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._url:
            self._thread.join()

    def _sample(self) -> None:
        assert self._url is not None
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._stop.wait(self.EVERY_S):
                self._counts.update(row[0] for row in connection.execute(self.QUERY))

    @property
    def shares(self) -> dict[str, float]:
        """The share of each event in all samples; the five largest."""
        total = self._counts.total() or 1
        return {event: round(n / total, 3) for event, n in self._counts.most_common(5)}
