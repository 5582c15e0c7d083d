"""Apps on each store, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from rota import Rota
from rota.model import Actor
from rota.operate import Operations
from rota.testing import FakeClock


@pytest.fixture
async def app(store_url: str) -> AsyncIterator[Rota]:
    app = Rota(store_url, clock=FakeClock())

    @app.task(queue="mail")
    async def send(to: str, password: str = "") -> str:
        return to

    yield app
    await app.close()


@pytest.fixture
def operations(app: Rota) -> Operations:
    """An operator who may do anything."""
    return app.operations(Actor(name="ann", role="admin", payloads=True, via="http", request_id="r-1"))
