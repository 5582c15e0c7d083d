"""Liveness and readiness probes. Open to all, and therefore without details."""

from __future__ import annotations

import asyncio
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from ..app import Rota
from ..errors import RotaError, SchemaMismatch
from ..runtime.clock import monotonic
from ..runtime.service_records import public
from .responses import json_response

StoreState = Literal["ok", "unavailable", "not migrated"]
FRESH_S = 1.0
TIMEOUT_S = 3.0


class Probes:
    """Answers ``/healthz`` and ``/readyz``. The store is checked at most once a second."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._checking = asyncio.Lock()
        self._store: StoreState = "unavailable"
        self._checked_at: float | None = None

    async def alive(self, request: Request) -> Response:
        """The event loop runs and no service is stuck. An unavailable store does not matter here."""
        if stuck := self._rota.runtime.records.stuck():
            return json_response({"status": "stuck", "services": stuck}, 503)
        return json_response({"status": "alive"})

    async def ready(self, request: Request) -> Response:
        """The store answers, its schema is current, and no service of this process is late."""
        async with self._checking:
            if self._checked_at is None or monotonic() - self._checked_at > FRESH_S:
                self._store = await self._check()
                self._checked_at = monotonic()
        services = self._rota.runtime.records.statuses(self._rota.clock.now())
        ready = self._store == "ok" and all(one.state == "ok" for one in services)
        body = {
            "status": "ready" if ready else "not ready",
            "store": self._store,
            "services": [public(one) for one in services],
        }
        return json_response(body, 200 if ready else 503)

    async def _check(self) -> StoreState:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                pending = await (await self._rota.stores.get()).schema.pending()
        except SchemaMismatch:
            return "not migrated"
        except (RotaError, TimeoutError):
            return "unavailable"
        return "not migrated" if pending else "ok"
