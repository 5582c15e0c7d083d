"""Rows of limits and tenants that were edited by hand: they hold nothing up, and are found."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rota import Rota
from rota.model import Finding, LimitRules, TenantRules
from rota.store.protocol import Store

Execute = Callable[[str], None]


@pytest.fixture(params=["sqlite", "postgres"])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rota]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'rota.db'}"
    else:
        url = request.getfixturevalue("migrated_postgres_url")
    app = Rota(url)
    await app.migrate()
    yield app
    await app.close()


@pytest.fixture
def execute(app: Rota) -> Execute:
    """Run SQL on the store, as a hand would."""

    def run(statement: str) -> None:
        url = app.stores.root().url
        if url.startswith("sqlite"):
            with sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None) as connection:
                connection.execute(statement.replace("rota.", "rota_"))
        else:
            with psycopg.connect(app.settings.url, autocommit=True) as server:
                server.execute(statement)  # type: ignore[call-overload]

    return run


async def warnings(store: Store, now: Any) -> list[Finding]:
    return [one for one in await store.check_health(now) if one.check == "rules" and one.level != "ok"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("running = 0", "column running is 0, where its limit says 5"),
        ("running = -3", "column running is -3, where its limit says 5"),
        ("every_ns = -1", "column every_ns is -1"),
        ("scope = 'planet'", "column scope is 'planet', where its limit says 'queue'"),
        ("""chosen = '{"running": 0}'""", "running=0: would let nothing run"),
        ("""chosen = '{"running": "many"}'""", "its limit cannot be read"),
        ("chosen = NULL", "neither declared nor chosen has a limit"),
        ("name = 'nonsense'", "name='nonsense': is not the name of a limit"),
    ],
)
async def test_a_spoiled_limit_is_found_and_a_new_one_replaces_it(
    app: Rota, execute: Execute, change: str, said: str
) -> None:
    await app.limits.set("queue:mail", running=5)
    store = await app.stores.get()
    assert await warnings(store, app.clock.now()) == []
    execute(f"UPDATE rota.limits SET {change}")
    (finding,) = await warnings(store, app.clock.now())
    assert said in finding.text and "rota limits set" in (finding.remedy or "")
    assert all(held.most is None or held.most > 0 for held in await app.limits.list())
    if "name" not in change:
        assert (await app.limits.set("queue:mail", running=2)).most == 2
        assert await warnings(store, app.clock.now()) == []
        assert [rule.name for rule in await store.survey(LimitRules())] == ["queue:mail"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("weight = 0", "column weight is 0"),
        ("weight = -1", "column weight is -1"),
        ("budget = 5", "it has a budget without a period"),
        ("period = 'year'", "column period is 'year'"),
        ("waiting = -1", "column waiting is -1"),
    ],
)
async def test_a_spoiled_tenant_is_found_and_hides_no_other(
    app: Rota, execute: Execute, change: str, said: str
) -> None:
    await app.tenants.set("acme", weight=2)
    await app.tenants.set("other", weight=3)
    execute(f"UPDATE rota.tenants SET {change} WHERE name = 'acme'")
    store = await app.stores.get()
    (finding,) = await warnings(store, app.clock.now())
    assert said in finding.text and "rota tenants set acme" in (finding.remedy or "")
    assert [rule.name for rule in await store.survey(TenantRules())] == ["other"]
    await app.tenants.set("acme", weight=4)
    assert await warnings(store, app.clock.now()) == []
