"""Stores and apps for tests of the command line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from cli.command import make_shop
from cli.in_process import URL
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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the sample app and its store."""
    make_shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_URL", URL)
    return tmp_path
