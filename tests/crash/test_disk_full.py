"""A full disk: callers get a clear error, nothing acknowledged is lost, and work continues later."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cluster import LONG, TIMEOUT_S, Cluster, WorkerProcess, poll

from rota.errors import RotaError, StoreError
from servers import Postgres, account

SQLITE_BYTES, POSTGRES_BYTES, WAL_BYTES = 16 * 2**20, 30 * 2**20, 72 * 2**20
FILLER = 0.5  # of the disk, for a file that is removed to make room, more than SQLite's log needs
MOST_JOBS = 20_000
TICKS = os.sysconf("SC_CLK_TCK")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="only root can mount"),
    pytest.mark.timeout(300),
]


@contextmanager
def small_disk(size: int) -> Iterator[Path]:
    """A disk in memory with a file that takes up some of it."""
    folder = Path(tempfile.mkdtemp(prefix="rota-small-"))
    options = f"size={size},mode=1777"
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=False)
    if made.returncode != 0:
        folder.rmdir()
        pytest.skip("mounting is not allowed here")
    try:
        (folder / "filler").write_bytes(bytes(int(size * FILLER)))
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)
        folder.rmdir()


@pytest.fixture
async def sqlite_disk(tmp_path: Path) -> AsyncIterator[tuple[Cluster, Path]]:
    with small_disk(SQLITE_BYTES) as disk:
        cluster = Cluster(f"sqlite:///{disk / 'rota.db'}", tmp_path)
        await cluster.app.migrate()
        yield cluster, disk
        await cluster.close()


@pytest.fixture
async def postgres_disk(
    postgres_server: Postgres, migrated_template: str, tmp_path: Path
) -> AsyncIterator[tuple[Cluster, Path]]:
    """The tables are on the small disk, the server's log of changes is not."""
    with small_disk(POSTGRES_BYTES) as disk:
        (disk / "space").mkdir()
        if (who := account()) is not None:
            os.chown(disk / "space", who.pw_uid, who.pw_gid)
        postgres_server.execute(f"CREATE TABLESPACE small LOCATION '{disk / 'space'}'")
        postgres_server.execute(f"CREATE DATABASE full_disk TEMPLATE {migrated_template} TABLESPACE small")
        cluster = Cluster(postgres_server.url("full_disk"), tmp_path)
        yield cluster, disk
        await cluster.close()
        postgres_server.drop_database("full_disk")
        postgres_server.execute("DROP TABLESPACE small")


async def fill(cluster: Cluster) -> RotaError:
    """Enqueue until the store refuses, and return its error. The jobs are held back, so that none ends."""
    text = secrets.token_hex(10_000)
    for n in range(MOST_JOBS):
        try:
            await cluster.enqueue("fat", n, text=text)
        except RotaError as error:
            cluster.run_log.write("U", n)
            return error
    raise AssertionError("the disk never filled up")


async def check(
    cluster: Cluster, disk: Path, recover: Callable[[], None] = lambda: None, crashes: int = 1
) -> None:
    worker = cluster.start(lease_s=5.0, concurrency=2)
    await cluster.wait_finished(await cluster.enqueue("work"))
    await cluster.app.pause(task="fat")
    error = await fill(cluster)
    print(f"{type(error).__name__}: {error}")
    assert isinstance(error, StoreError)
    used = cpu_s(worker)
    await asyncio.sleep(10.0 if LONG else 1.0)  # what is measured
    print(f"{len(cluster.run_log.acknowledged())} acknowledged")
    print(f"while full, the worker used {cpu_s(worker) - used:.2f} s of CPU")
    (disk / "filler").unlink()
    await asyncio.to_thread(recover)
    await poll(lambda: can_enqueue(cluster), bool, TIMEOUT_S, lambda _: "enqueues again")
    await cluster.app.resume(task="fat")
    await cluster.wait_until_idle(within=TIMEOUT_S * 2)
    assert worker.code is None, worker.log
    await cluster.check_invariants(crashes=crashes)
    assert "Traceback" not in worker.log


async def can_enqueue(cluster: Cluster) -> bool:
    try:
        await cluster.enqueue("work")
    except RotaError:
        cluster.run_log.write("U", 0)
        return False
    return True


def cpu_s(worker: WorkerProcess) -> float:
    fields = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def test_sqlite_on_a_full_disk_loses_nothing(sqlite_disk: tuple[Cluster, Path]) -> None:
    cluster, disk = sqlite_disk
    await check(cluster, disk)
    connection = sqlite3.connect(disk / "rota.db")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


async def test_postgresql_on_a_full_disk_loses_nothing(postgres_disk: tuple[Cluster, Path]) -> None:
    await check(*postgres_disk)


async def test_postgresql_that_dies_of_a_full_log_loses_nothing(tmp_path: Path) -> None:
    """The disk of its write-ahead log: the server stops at once, and cannot start until there is room."""
    settings = {"max_wal_size": "4GB", "fsync": "on"}
    with small_disk(WAL_BYTES) as disk, Postgres(settings=settings) as server:
        server.stop()
        server.move_log_to(disk / "pg_wal")
        server.start()
        cluster = Cluster(server.create_database("full_log"), tmp_path)
        await cluster.app.migrate()

        def recover() -> None:
            assert server.is_dead, "the disk of the log was never full"
            server.crash()
            server.start()

        try:
            await check(cluster, disk, recover)
        finally:
            await cluster.close()
