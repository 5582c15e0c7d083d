"""Liveness and readiness probes. Open to all, and therefore without details."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from ..app import Rota
from ..errors import RotaError
from ..runtime.clock import monotonic
from ..runtime.service_records import ServiceStatus
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
        """The event loop runs and no service is stuck. An unavailable store does not matter here."""
        if stuck := self._rota.runtime.records.stuck():
            return json_response({"status": "stuck", "services": stuck}, 503)
        return json_response({"status": "alive"})

    async def ready(self, request: Request) -> Response:
        """The store answers, its schema is current, and no service of this process is late."""
        async with self._checking:
            if self._checked_at is None or monotonic() - self._checked_at > FRESH_S:
                self._ready = await self._check()
                self._checked_at = monotonic()
        services = self._rota.runtime.records.statuses(self._rota.clock.now())
        ready = self._ready and all(one.state == "ok" for one in services)
        body = {"status": "ready" if ready else "not ready", "services": [_public(one) for one in services]}
        return json_response(body, 200 if ready else 503)

    async def _check(self) -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return not await (await self._rota.stores.get()).schema.pending()
        except (RotaError, TimeoutError):
            return False


def _public(service: ServiceStatus) -> dict[str, object]:
    """Without the error, which may name the store."""
    return {"name": service.name, "state": service.state, "succeeded_at": service.succeeded_at}
