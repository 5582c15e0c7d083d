"""Every store agrees with the model under random calls.

``ROTA_MACHINE=long`` runs much longer, with different examples each time.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from machine.runs import check_examples, in_memory
from rota.store.open import open_store
from rota.store.protocol import Store


@pytest.mark.timeout(0)
def test_sqlite_in_memory_agrees_with_the_model() -> None:
    check_examples(in_memory, examples=80, steps=40)


@pytest.mark.timeout(0)
def test_sqlite_file_agrees_with_the_model(tmp_path: Path) -> None:
    serial = iter(range(10**9))

    async def make() -> Store:
        store = open_store(f"sqlite:///{tmp_path / f'{next(serial)}.db'}")
        await store.schema.migrate()
        await store.open()
        return store

    check_examples(make, examples=15, steps=30)


@pytest.mark.timeout(0)
def test_postgres_agrees_with_the_model(emptied_postgres: Callable[[], Coroutine[Any, Any, Store]]) -> None:
    check_examples(emptied_postgres, examples=30, steps=35)
