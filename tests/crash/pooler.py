"""A PgBouncer in transaction mode for tests, from the system's package; there is none on PyPI."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from servers import SUPERUSER, account, free_port

BINARY = shutil.which("pgbouncer", path="/usr/bin:/usr/sbin:/usr/local/bin")
START_S = 20.0


class Pooler:
    """``with Pooler(port, folder) as pooler``: ``pooler.port`` leads to the server on the local port."""

    def __init__(self, target: int, folder: Path) -> None:
        assert BINARY is not None
        self.port = free_port()
        self._config = folder / "pgbouncer.ini"
        self._config.write_text(
            f"[databases]\n* = host=127.0.0.1 port={target} user={SUPERUSER}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nauth_type = any\n"
            "pool_mode = transaction\ndefault_pool_size = 20\nmax_client_conn = 200\nunix_socket_dir =\n"
        )

    def __enter__(self) -> Self:
        who = account()  # it refuses to run as root, and reads its settings before it changes
        change = [] if who is None else ["-u", who.pw_name]
        self._process = subprocess.Popen(
            [str(BINARY), "-q", *change, str(self._config)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self._process.poll() is None and time.monotonic() < deadline, (
                    "pgbouncer has not started"
                )
                time.sleep(0.05)
            else:
                return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
