"""A trial: one peer on a fresh store, with its roles and workers in separate processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from .errors import MeasurementFailed
from .execution_log import ExecutionLog
from .peers import ADAPTERS, Peer
from .system_metrics import Server

DATABASE = "rota_bench"
ROLE_S = 300.0
TERM_S = 5.0


class Trial:
    """``admin``: the URL used to create databases. The adapter receives ``options`` unchanged."""

    def __init__(self, peer: Peer, admin: str, folder: Path, options: Mapping[str, Any]) -> None:
        self.peer, self.folder, self.options = peer, folder, dict(options)
        self._admin = admin
        self.on_postgres = peer.store == "postgres"
        self.file = folder / "queue.db"
        self.url = admin.rsplit("/", 1)[0] + f"/{DATABASE}" if self.on_postgres else str(self.file)
        self._reset()
        self.run_role("setup")
        self.server = Server(self.url if self.on_postgres else None)

    @property
    def server_url(self) -> str | None:
        return self.url if self.on_postgres else None

    def _reset(self) -> None:
        for old in self.folder.glob("queue.db*"):
            old.unlink()
        if self.on_postgres:
            with psycopg.connect(self._admin, autocommit=True) as connection:
                connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)".encode())
                connection.execute(f"CREATE DATABASE {DATABASE}".encode())
                connection.execute(b"CHECKPOINT")

    def close(self) -> None:
        self.server.close()

    def vacuum_and_checkpoint(self) -> None:
        """Do now what autovacuum does within a minute, and avoid a checkpoint during the run."""
        self.server.run("VACUUM ANALYZE")
        self.server.run("CHECKPOINT")

    # --- roles -----------------------------------------------------------------------------------

    def run_role(self, name: str, **arguments: Any) -> Any:
        """Run a role until it exits and return its result."""
        return self.result(self.start_role(name, **arguments))

    def start_role(self, name: str, **arguments: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.peer.command, name, json.dumps(arguments)], env=self._environment(), cwd=ADAPTERS,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    def result(self, process: subprocess.Popen[str], text: str | None = None) -> Any:
        try:
            out, err = process.communicate(text, timeout=ROLE_S)
        except subprocess.TimeoutExpired:
            terminate(process)
            raise MeasurementFailed(f"a role did not finish within {ROLE_S:.0f} s") from None
        for line in out.splitlines():
            if line.startswith("RESULT "):
                return json.loads(line.removeprefix("RESULT "))
        raise MeasurementFailed((err or out).strip()[-600:] or "a role exited without output")

    @contextmanager
    def waiter(self) -> Iterator[subprocess.Popen[str]]:
        """A connected process that sleeps until ``wait_until_empty`` uses it."""
        process = self.start_role("wait")
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "READY":
                raise MeasurementFailed(process.communicate()[1].strip()[-600:])
            yield process
        finally:
            terminate(process)

    def wait_until_empty(self, waiter: subprocess.Popen[str]) -> int:
        """The time at which the store itself reports that every job has finished."""
        found = self.result(waiter, "go\n")
        if found["left"]:
            raise MeasurementFailed(f"{found['left']} jobs ran but never finished in the store")
        return int(found["at"])

    # --- workers ---------------------------------------------------------------------------------

    @contextmanager
    def workers(self, count: int, execution_log: ExecutionLog) -> Iterator[list[subprocess.Popen[str]]]:
        """Run ``count`` worker processes during the block."""
        started: list[subprocess.Popen[str]] = []
        try:
            for number in range(count):
                started.append(self._worker(number, execution_log))
            yield started
        finally:
            for process in started:
                terminate(process)

    def _worker(self, number: int, execution_log: ExecutionLog) -> subprocess.Popen[str]:
        with (self.folder / f"worker-{number}.log").open("w") as log:
            return subprocess.Popen(
                [*self.peer.command, "work", "{}"], env=self._environment() | execution_log.environment,
                cwd=ADAPTERS, stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True,
                start_new_session=True,
            )  # fmt: skip

    def wait_for_executions(
        self, n: int, log: ExecutionLog, workers: list[subprocess.Popen[str]], limit_s: float
    ) -> None:
        """Wait until n executions are recorded; fail after ``limit_s`` seconds or if the workers exit."""
        deadline = time.monotonic() + limit_s
        while (count := log.count()) < n:
            if time.monotonic() > deadline:
                raise MeasurementFailed(f"only {count} of {n} jobs ran within {limit_s:.0f} s")
            if all(process.poll() is not None for process in workers):
                raise MeasurementFailed(f"the workers exited after {count} of {n} jobs: {self._log_tail()}")
            time.sleep(0.02)

    def _log_tail(self) -> str:
        return (self.folder / "worker-0.log").read_text(errors="replace").strip()[-400:]

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ROTA_", "DATABASE_URL"))}
        return kept | {
            "BENCH_URL": self.url,
            "BENCH_OPTIONS": json.dumps(self.options),
            "BENCH_PACKAGES": str(self.peer.packages),
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def terminate(process: subprocess.Popen[str]) -> None:
    """Terminate a process of the benchmark and its children, which share its session."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(TERM_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
