"""Liveness and readiness probes. Open to all, and therefore without details."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from ..app import Rota
from ..errors import RotaError
from ..runtime.clock import monotonic
from .responses import json_response

FRESH_S = 1.0
TIMEOUT_S = 3.0


class Probes:
    """Answers ``/healthz`` and ``/readyz``. The store is checked at most once a second."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._checking = asyncio.Lock()
        self._ready = False
        self._checked_at: float | None = None

    async def alive(self, request: Request) -> Response:
        """The event loop runs, or there would be no response. An unavailable store does not matter here."""
        return json_response({"status": "alive"})

    async def ready(self, request: Request) -> Response:
        """The store answers, and its schema is current."""
        async with self._checking:
            if self._checked_at is None or monotonic() - self._checked_at > FRESH_S:
                self._ready = await self._check()
                self._checked_at = monotonic()
        return (
            json_response({"status": "ready"}) if self._ready else json_response({"status": "not ready"}, 503)
        )

    async def _check(self) -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return not await (await self._rota.stores.get()).schema.pending()
        except (RotaError, TimeoutError):
            return False
