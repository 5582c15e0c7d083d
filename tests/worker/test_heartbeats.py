"""The life of the heartbeat thread: it ends with its worker, however early or roughly that ends."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from rota import Rota
from rota.worker.heartbeats import HeartbeatThread


async def test_a_stop_reaches_a_heartbeat_thread_that_has_yet_to_begin(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    serve, stop = HeartbeatThread._serve, HeartbeatThread.stop
    threads: list[threading.Thread] = []

    def serve_late(self: HeartbeatThread) -> None:
        threads.append(threading.current_thread())
        stopped.wait(10)
        serve(self)

    async def stop_first(self: HeartbeatThread) -> None:
        stopping = asyncio.create_task(stop(self))
        await asyncio.sleep(0)  # it has asked the thread to stop
        stopped.set()
        await stopping

    monkeypatch.setattr(HeartbeatThread, "_serve", serve_late)
    monkeypatch.setattr(HeartbeatThread, "stop", stop_first)
    async with app.running():
        pass
    assert [thread.is_alive() for thread in threads] == [False]


def test_a_heartbeat_thread_ends_when_the_loop_of_its_worker_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def begin() -> HeartbeatThread:
        app = Rota(f"sqlite:///{tmp_path / 'rota.db'}")
        async with app.worker(lease_s=2) as worker:
            heartbeats = HeartbeatThread(worker._environment, worker.slots, worker._document)
            heartbeats.start()
        await app.close()
        return heartbeats

    heartbeats = asyncio.run(begin())
    assert heartbeats._thread is not None
    heartbeats._thread.join(10)
    assert not heartbeats._thread.is_alive() and heartbeats._guard.pid is not None
    assert heartbeats._guard._socket is None  # the guard has ended, too
    assert "its event loop was closed before it stopped" in caplog.text
