"""When a guard may renew for a worker, and when there is none. With real processes: tests/crash."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from rota import Rota
from rota.worker import lease_guard
from rota.worker.lease_guard_child import Snapshot, Thread, trouble

IDLE = {"1": Thread("S", 4.0), "2": Thread("S", 1.0)}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param({"1": Thread("R", 4.0), "2": Thread("S", 1.0)}, None, id="waits for a processor"),
        pytest.param({"1": Thread("D", 4.0)}, None, id="waits for memory from the disk"),
        pytest.param({"1": Thread("S", 4.6), "2": Thread("S", 1.0)}, None, id="used a processor"),
        pytest.param({"1": Thread("S", 4.0), "2": Thread("S", 1.1)}, "does nothing", id="only polls"),
        pytest.param({"1": Thread("S", 4.0), "3": Thread("S", 9.0)}, "does nothing", id="a new thread"),
        pytest.param({"1": Thread("T", 4.9), "2": Thread("T", 1.0)}, "is stopped", id="stopped"),
        pytest.param({"1": Thread("t", 4.9)}, "is stopped", id="in a debugger"),
        pytest.param({"1": Thread("Z", 4.9)}, "has ended", id="zombie"),
        pytest.param({}, "has ended", id="gone"),
    ],
)
def test_guard_renews_only_for_a_worker_that_is_at_work(after: Snapshot, expected: str | None) -> None:
    assert trouble(IDLE, after, 10.0) == expected


async def started(app: Rota, **options: bool) -> int | None:
    """The process id of the guard of a worker of this app."""
    began = asyncio.Event()
    app.on("worker.started")(lambda event: began.set())
    await app.migrate()
    try:
        async with app.running(**options) as worker:
            await began.wait()
            assert worker._heartbeats is not None
            return worker._heartbeats._guard.pid
    finally:
        await app.close()


async def test_there_is_a_guard_by_default_and_it_ends_with_the_worker(tmp_path: Path) -> None:
    pid = await started(Rota(f"sqlite:///{tmp_path / 'rota.db'}"))
    assert pid is not None and str(pid) not in os.listdir("/proc")


async def test_there_is_no_guard_if_it_is_switched_off(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'rota.db'}"
    assert await started(Rota(url, lease_guard=False)) is None
    assert await started(Rota(url), lease_guard=False) is None


async def test_there_is_no_guard_where_no_other_process_can_see_the_jobs() -> None:
    assert await started(Rota("sqlite://:memory:")) is None


@pytest.mark.parametrize(
    ("name", "value"), [("platform", "darwin"), ("executable", "/opt/shop/shop"), ("executable", "")]
)
async def test_there_is_no_guard_where_it_cannot_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setattr(lease_guard.sys, name, value)
    assert await started(Rota(f"sqlite:///{tmp_path / 'rota.db'}")) is None


async def test_a_guard_that_cannot_start_is_logged_and_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lease_guard.sys, "executable", str(tmp_path / "python-that-is-not-there"))
    assert await started(Rota(f"sqlite:///{tmp_path / 'rota.db'}")) is None
    assert "has no lease guard" in caplog.text
