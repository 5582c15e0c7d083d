"""PostgreSQL: connections that stay open but silent, as behind a hung proxy or after a failover."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from proxy import Proxy
from rota.errors import StoreUnavailable
from rota.model import (
    AuditFilter,
    CurrentOverview,
    Heartbeat,
    JobFilter,
    PageRequest,
    RetentionCutoffs,
    ScheduleFilter,
)
from rota.store.calls import claim
from rota.store.postgres import connections
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, new, want
from servers import Postgres

pytestmark = pytest.mark.crash

PATIENCE_S = 0.5
WITHIN_S = 20.0

CALLS: dict[str, Callable[[PostgresStore], Awaitable[Any]]] = {
    "clock": lambda store: store.clock(),
    "insert one": lambda store: store.insert([new()], T0),
    "insert a few": lambda store: store.insert([new(queue=f"q{n}") for n in range(10)], T0),
    "insert a stream": lambda store: store.insert([new() for _ in range(5000)], T0),
    "turn": lambda store: claim(store, want(), T0),
    "heartbeat": lambda store: store.heartbeat(Heartbeat(worker="w", document="{}", lease_s=30), T0),
    "reclaim": lambda store: store.reclaim("w", 30, 10, T0),
    "due schedules": lambda store: store.due_schedules(T0, 10),
    "schedules": lambda store: store.schedules(ScheduleFilter(), PageRequest()),
    "jobs": lambda store: store.jobs(JobFilter(), PageRequest()),
    "a search": lambda store: store.jobs(JobFilter(error="x"), PageRequest()),
    "overview": lambda store: store.survey(CurrentOverview(T0)),
    "audit": lambda store: store.audit(AuditFilter(), PageRequest()),
    "maintain": lambda store: store.maintain(RetentionCutoffs(), 10, T0 + timedelta(days=1)),
    "documents": lambda store: store.documents("gate"),
    "put a document": lambda store: store.put_document("x", "k", "{}", None, T0),
    "health": lambda store: store.check_health(T0),
    "schema": lambda store: store.schema.pending(),
}


@pytest.fixture
async def proxy(postgres_server: Postgres) -> AsyncIterator[Proxy]:
    async with Proxy(postgres_server.port) as fresh:
        yield fresh


@pytest.fixture
async def store(
    proxy: Proxy, migrated_postgres_url: str, postgres_server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[PostgresStore]:
    for kind in connections.PATIENCE_S:
        monkeypatch.setitem(connections.PATIENCE_S, kind, PATIENCE_S)
    url = migrated_postgres_url.replace(str(postgres_server.port), str(proxy.port))
    opened = PostgresStore(url)
    await opened.open()
    yield opened
    await opened.close()


@pytest.mark.parametrize("name", CALLS)
async def test_a_silent_connection_ends_in_an_answer_or_a_clear_error(
    name: str, store: PostgresStore, proxy: Proxy
) -> None:
    call = CALLS[name]
    await asyncio.gather(*(store.clock() for _ in range(4)))  # as many connections as there can be
    proxy.freeze()
    async with asyncio.timeout(WITHIN_S):
        try:
            await call(store)
        except StoreUnavailable as error:
            assert "no answer within 0.5 s" in str(error)
        await call(store)
    assert store.gauges["connections_lent"] == 0
