"""Liveness and readiness probes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sites import Site, Sites

from rota.errors import StoreUnavailable
from rota.runtime import service_records
from rota.runtime.service_records import ServiceRecord


def test_probes_show_no_details(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site.get("/healthz").json == {"status": "alive"}
    assert site.get("/readyz").json == {"status": "ready", "store": "ok", "services": []}


def test_unavailable_store_is_alive_and_not_ready(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(stores: Any) -> None:
        raise StoreUnavailable("10.0.0.7 does not answer")

    site = sites()
    monkeypatch.setattr("rota.runtime.stores.StorePerLoop.get", away)
    assert site.get("/healthz").status == 200
    answer = site.get("/readyz")
    assert (answer.status, msgspec.json.decode(answer.body)) == (
        503,
        {"status": "not ready", "store": "unavailable", "services": []},
    )
    monkeypatch.undo()


def test_a_late_service_is_alive_and_not_ready(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    record = ServiceRecord("rescue")
    record.worked()
    with site.rota.runtime.records.showing(record):
        assert site.get("/readyz").status == 200
        monkeypatch.setattr(service_records, "LATE_S", -1.0)
        record.worked()
        record.failed(StoreUnavailable("10.0.0.7 does not answer"))
        assert site.get("/healthz").status == 200
        answer = site.get("/readyz")
    assert answer.status == 503
    (service,) = msgspec.json.decode(answer.body)["services"]
    assert (service["name"], service["state"]) == ("rescue", "late")
    assert b"10.0.0.7" not in answer.body
    assert site.get("/readyz").status == 200


def test_a_stuck_service_is_not_alive(site: Site) -> None:
    record = ServiceRecord("heartbeat")
    with site.rota.runtime.records.showing(record):
        record.ended(RuntimeError("no more threads"))
        answer = site.get("/healthz")
        assert (answer.status, msgspec.json.decode(answer.body)) == (
            503,
            {"status": "stuck", "services": ["heartbeat"]},
        )
    assert site.get("/healthz").status == 200
