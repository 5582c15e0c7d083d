"""One open store for each event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from rota.runtime import stores
from rota.runtime.clock import Clock
from rota.store.protocol import Store
from rota.store.sqlite.store import SqliteStore


def test_two_loops_that_open_at_once_do_not_share_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Barrier(2)
    url = f"sqlite:///{tmp_path / 'rota.db'}"

    async def migrate() -> None:
        store = SqliteStore(url)
        await store.schema.migrate()
        await store.close()

    asyncio.run(migrate())

    class Slow(SqliteStore):
        async def open(self) -> None:
            await asyncio.to_thread(both.wait, 30)
            await super().open()

        def for_another_loop(self) -> SqliteStore:
            return Slow(url, engine=self._engine)

    monkeypatch.setattr(stores, "open_store", Slow)
    per_loop = stores.StorePerLoop(url, Clock())

    async def use() -> Store:
        store = await per_loop.get()
        await asyncio.to_thread(both.wait, 30)
        await per_loop.close()
        return store

    with ThreadPoolExecutor(2) as pool:
        first, second = (future.result() for future in [pool.submit(asyncio.run, use()) for _ in range(2)])
    assert first is not second
