"""For probes: is the process alive, is it of use. Open to all, and so without details."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from ..app import Rota
from ..errors import RotaError
from ..runtime.clock import monotonic
from .responses import answer

FRESH_S = 1.0
PATIENCE_S = 3.0


class Probes:
    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._asking = asyncio.Lock()
        self._ready = False
        self._asked_at: float | None = None

    async def alive(self, request: Request) -> Response:
        """The event loop ticks, or there would be no answer. A store that is away does not matter here."""
        return answer({"status": "alive"})

    async def ready(self, request: Request) -> Response:
        """The store answers and its schema is ours. However many ask, the store is asked once a second."""
        async with self._asking:
            if self._asked_at is None or monotonic() - self._asked_at > FRESH_S:
                self._ready = await self._ask()
                self._asked_at = monotonic()
        return answer({"status": "ready"}) if self._ready else answer({"status": "not ready"}, 503)

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return not await (await self._rota.stores.get()).schema.pending()
        except (RotaError, TimeoutError):
            return False
