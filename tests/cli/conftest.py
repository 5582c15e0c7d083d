"""Stores and apps for tests of the command line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from rota import Rota


@pytest.fixture(params=("sqlite", "postgres"))
def app_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'rota.db'}"
    url: str = request.getfixturevalue("migrated_postgres_url")
    return url


@pytest.fixture
async def app(app_url: str) -> AsyncIterator[Rota]:
    """An app on each store."""
    app = Rota(app_url)
    yield app
    await app.close()


@pytest.fixture
def until() -> Callable[..., Any]:
    """``await until(condition)``: poll until it holds, and fail at a deadline."""

    async def wait(condition: Callable[[], Any], seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while True:
            answer = condition()
            if await answer if asyncio.iscoroutine(answer) else answer:
                return
            assert time.monotonic() < deadline, "it did not happen in time"
            await asyncio.sleep(0.005)

    return wait
