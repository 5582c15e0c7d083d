"""Liveness and readiness probes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sites import Site, Sites

from rota.errors import StoreUnavailable


def test_probes_show_no_details(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site.get("/healthz").json == {"status": "alive"}
    assert site.get("/readyz").json == {"status": "ready"}


def test_unavailable_store_is_alive_and_not_ready(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(stores: Any) -> None:
        raise StoreUnavailable("10.0.0.7 does not answer")

    site = sites()
    monkeypatch.setattr("rota.runtime.stores.StorePerLoop.get", away)
    assert site.get("/healthz").status == 200
    answer = site.get("/readyz")
    assert (answer.status, msgspec.json.decode(answer.body)) == (503, {"status": "not ready"})
    monkeypatch.undo()
