"""One peer on a fresh store: its roles as processes of their own, its workers, its ledger."""

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

from .errors import Failed
from .ledger import Ledger
from .meters import Server
from .peers import ADAPTERS, Peer

DATABASE = "rota_bench"
ROLE_S = 300.0
TERM_S = 5.0


class Stage:
    """``admin``: the URL by which databases are made. ``options`` reach the adapter as they are."""

    def __init__(self, peer: Peer, admin: str, folder: Path, options: Mapping[str, Any]) -> None:
        self.peer, self.folder, self.options = peer, folder, dict(options)
        self._admin = admin
        self.on_postgres = peer.store == "postgres"
        self.file = folder / "queue.db"
        self.url = admin.rsplit("/", 1)[0] + f"/{DATABASE}" if self.on_postgres else str(self.file)
        self._reset()
        self.role("setup")
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

    def calm_down(self) -> None:
        """What autovacuum does within a minute, now, for everybody; and no checkpoint in the midst of it."""
        self.server.run("VACUUM ANALYZE")
        self.server.run("CHECKPOINT")

    # --- roles -----------------------------------------------------------------------------------

    def role(self, name: str, **arguments: Any) -> Any:
        """Run a role to its end; what it found."""
        return self.result(self.begin(name, **arguments))

    def begin(self, name: str, **arguments: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.peer.command, name, json.dumps(arguments)], env=self._environment(), cwd=ADAPTERS,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    def result(self, process: subprocess.Popen[str], said: str | None = None) -> Any:
        try:
            out, err = process.communicate(said, timeout=ROLE_S)
        except subprocess.TimeoutExpired:
            end(process)
            raise Failed(f"a role did not end within {ROLE_S:.0f} s") from None
        for line in out.splitlines():
            if line.startswith("RESULT "):
                return json.loads(line.removeprefix("RESULT "))
        raise Failed((err or out).strip()[-600:] or "a role ended without a word")

    @contextmanager
    def waiter(self) -> Iterator[subprocess.Popen[str]]:
        """Connected, and asleep until ``nothing_left`` asks it."""
        process = self.begin("wait")
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "READY":
                raise Failed(process.communicate()[1].strip()[-600:])
            yield process
        finally:
            end(process)

    def nothing_left(self, waiter: subprocess.Popen[str]) -> int:
        """The instant at which the store itself said that every job has ended."""
        found = self.result(waiter, "go\n")
        if found["left"]:
            raise Failed(f"{found['left']} jobs ran but never ended in the store")
        return int(found["at"])

    # --- workers ---------------------------------------------------------------------------------

    @contextmanager
    def workers(self, count: int, ledger: Ledger) -> Iterator[list[subprocess.Popen[str]]]:
        """So many worker processes while the block runs."""
        begun: list[subprocess.Popen[str]] = []
        try:
            for number in range(count):
                begun.append(self._worker(number, ledger))
            yield begun
        finally:
            for process in begun:
                end(process)

    def _worker(self, number: int, ledger: Ledger) -> subprocess.Popen[str]:
        with (self.folder / f"worker-{number}.log").open("w") as log:
            return subprocess.Popen(
                [*self.peer.command, "work", "{}"], env=self._environment() | ledger.environment,
                cwd=ADAPTERS, stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True,
                start_new_session=True,
            )  # fmt: skip

    def until(self, n: int, ledger: Ledger, workers: list[subprocess.Popen[str]], limit_s: float) -> None:
        """Wait for n executions."""
        abandon_all = time.monotonic() + limit_s
        while (count := ledger.count()) < n:
            if time.monotonic() > abandon_all:
                raise Failed(f"only {count} of {n} jobs ran within {limit_s:.0f} s")
            if all(process.poll() is not None for process in workers):
                raise Failed(f"the workers ended after {count} of {n} jobs: {self._last_words()}")
            time.sleep(0.02)

    def _last_words(self) -> str:
        return (self.folder / "worker-0.log").read_text(errors="replace").strip()[-400:]

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ROTA_", "DATABASE_URL"))}
        return kept | {
            "BENCH_URL": self.url,
            "BENCH_OPTIONS": json.dumps(self.options),
            "BENCH_PACKAGES": str(self.peer.packages),
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def end(process: subprocess.Popen[str]) -> None:
    """End a process that we began, and whatever it began: it has a session of its own."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(TERM_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
