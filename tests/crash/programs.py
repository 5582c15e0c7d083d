"""``rota up``, ``rota serve`` and other commands as processes, with the tasks of ``crash_app.py``."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cluster import TIMEOUT_S, Cluster, until

import rota
from rota.model import Actor
from rota.operate.requests import CreateTokenRequest

HERE = Path(__file__).parent
SOURCE = str(Path(rota.__file__).resolve().parents[1])
ADMIN = Actor(name="test", role="admin", payloads=True, via="system")


def environment(cluster: Cluster, url: str, **more: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([SOURCE, str(HERE)]),
        "PYTHONUNBUFFERED": "1",
        "CRASH_URL": url,
        "CRASH_RUN_LOG": str(cluster.run_log.path),
        "ROTA_POLL_INTERVAL_MS": "200",
        "ROTA_LEASE_DURATION_S": "5",
        "ROTA_APP": "crash_app:app",
        **more,
    }


class Program:
    """A running ``rota`` that serves HTTP: ``async with Program(cluster, "up", url=…) as up``."""

    def __init__(self, cluster: Cluster, *args: str, url: str | None = None, **env: str) -> None:
        self._cluster = cluster
        self._args = [*args, "--port", "0", "--log-format", "text"]
        self._env = environment(cluster, url or cluster.url, **env)
        self._log = cluster.folder / f"{args[0]}.log"
        self._address: tuple[str, int] = ("", 0)
        self._token = ""

    async def __aenter__(self) -> Program:
        created = await self._cluster.app.operations(ADMIN).access.create_token(
            CreateTokenRequest(role="admin", name=self._args[0])
        )
        self._token = created.token
        self._process = self._start()
        try:
            await until("the server listens", lambda: self._listens() is not None)
        except AssertionError as error:
            self._end()
            raise AssertionError(f"{error}\n{self.log}") from None
        found = self._listens()
        assert found is not None
        parts = urlsplit(found[1])
        assert parts.hostname is not None and parts.port is not None
        self._address = parts.hostname, parts.port
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "rota", *self._args], env=self._env, cwd=self._cluster.folder,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _listens(self) -> re.Match[str] | None:
        return re.search(r"dashboard and API at (http\S+)", self.log)

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    async def ask(self, method: str, path: str, body: Any = None) -> int:
        """The status of the answer; it must come within the limit."""
        return await asyncio.to_thread(self._ask, method, path, body)

    def _ask(self, method: str, path: str, body: Any) -> int:
        connection = http.client.HTTPConnection(*self._address, timeout=TIMEOUT_S)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()


async def command(cluster: Cluster, *args: str, url: str, **env: str) -> tuple[int, str]:
    """Run a command to its end; its exit code and all it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rota", *args, env=environment(cluster, url, **env), cwd=cluster.folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(TIMEOUT_S):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return process.returncode, said.decode(errors="replace")
