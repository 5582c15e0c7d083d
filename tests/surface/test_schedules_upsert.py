"""``create(on_conflict="update")``, and schedules in the caller's own transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from rota import Rota
from rota.errors import AlreadyRegistered, ConfigError, InvalidSchedule, NotFound
from rota.model import AuditFilter, PageRequest
from rota.testing import FakeClock


async def actions(app: Rota, count: int) -> list[str]:
    """The last ones: tests that share a database leave entries in its audit log."""
    page = await (await app.stores.get()).audit(AuditFilter(), PageRequest(limit=count))
    return [entry.action for entry in reversed(page.items)]


async def test_an_upsert_creates_then_changes_what_is_given_and_keeps_the_rest(
    still_app: Rota, clock: FakeClock
) -> None:
    app = still_app
    made = await app.schedules.create(
        name="s", task="t", every="1h", payload={"a": 1}, queue="q", on_conflict="update"
    )
    assert (made.version, made.queue) == (1, "q")
    clock.advance(60)
    same = await app.schedules.create(name="s", task="t", every="1h", on_conflict="update")
    assert same == made
    changed = await app.schedules.create(
        name="s", task="t", every="1h", payload={"a": 2}, on_conflict="update"
    )
    assert (changed.id, changed.payload, changed.queue) == (made.id, {"a": 2}, "q")
    assert changed.next_run_at == made.next_run_at
    daily = await app.schedules.create(name="s", task="t", cron="0 3 * * *", on_conflict="update")
    assert (daily.every, daily.cron) == (None, "0 3 * * *")
    assert await actions(app, 3) == ["schedule.create", "schedule.update", "schedule.update"]


async def test_an_upsert_at_every_start_never_postpones_the_next_run(lite: Rota, clock: FakeClock) -> None:
    first = clock.now()
    for _ in range(5):
        one = await lite.schedules.create(
            name="s", task="t", every="1h", start_at=clock.now(), on_conflict="update"
        )
        clock.advance(50 * 60)
        assert one.next_run_at == first
    disabled = await lite.schedules.disable("s")
    again = await lite.schedules.create(name="s", task="t", every="2h", on_conflict="update")
    assert (disabled.enabled, again.enabled, again.every) == (False, False, 7200.0)


async def test_without_an_upsert_a_name_in_use_is_refused_with_the_remedy(lite: Rota) -> None:
    await lite.schedules.create(name="s", task="t", every="1h")
    with pytest.raises(AlreadyRegistered, match="on_conflict='update'"):
        await lite.schedules.create(name="s", task="t", every="1h")
    with pytest.raises(InvalidSchedule, match="on_conflict='replace': must be one of raise, update"):
        await lite.schedules.create(name="s", task="t", every="1h", on_conflict="replace")  # type: ignore[arg-type]


@contextmanager
def transaction(url: str) -> Iterator[Any]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.rollback()
    else:
        with closing(psycopg.connect(url)) as other:
            yield other
            other.rollback()


async def test_a_schedule_exists_if_and_only_if_the_callers_transaction_commits(
    still_app: Rota, app_url: str, clock: FakeClock
) -> None:
    app = still_app
    await app.migrate()
    await app.calendars.put("holidays", [])
    for commits in (False, True):
        with transaction(app_url) as connection:
            made = await app.schedules.create(
                name="s", tenant="acme", task="t", every="1h", start_at=clock.now(), calendar="holidays",
                connection=connection,
            )  # fmt: skip
            assert (made.version, made.next_run_at) == (1, clock.now())
            with pytest.raises(NotFound):
                await app.schedules.get("s", tenant="acme")
            if commits:
                connection.commit()
    assert await app.schedules.get("s", tenant="acme") == made
    assert await actions(app, 1) == ["schedule.create"]


async def test_updates_upserts_and_deletes_join_the_callers_transaction(
    still_app: Rota, app_url: str, clock: FakeClock
) -> None:
    app = still_app
    await app.schedules.create(name="s", task="t", every="1h", payload={"b": 1, "a": [1.5, "x"]})
    await app.schedules.create(name="old", task="t", at=clock.now() + timedelta(days=1))
    with transaction(app_url) as connection:
        given: dict[str, Any] = {"connection": connection}
        await app.schedules.update("s", queue="q", **given)
        await app.schedules.create(name="s", task="t", every="2h", on_conflict="update", **given)
        await app.schedules.delete("old", **given)
        with pytest.raises(NotFound):
            await app.schedules.delete("never", **given)
        connection.commit()
    changed = await app.schedules.get("s")
    assert (changed.queue, changed.every, changed.payload) == ("q", 7200.0, {"b": 1, "a": [1.5, "x"]})
    with pytest.raises(NotFound):
        await app.schedules.get("old")
    assert await actions(app, 3) == ["schedule.update", "schedule.update", "schedule.delete"]


async def test_a_scheduler_fires_a_schedule_of_a_transaction_soon_after_its_commit(
    app: Rota, app_url: str, until: Any
) -> None:
    async with app.running(tick_s=3600, poll_s=0.01):
        await until(lambda: app.is_idle)
        with transaction(app_url) as connection:
            await app.schedules.create(
                name="s", task="t", every="1h", start_at=app.clock.now(), connection=connection
            )
            connection.commit()

        async def fired() -> bool:
            return bool((await app.jobs()).items)

        await until(fired)


def test_sync_code_joins_its_own_transaction_in_its_own_thread(app_url: str) -> None:
    app = Rota(app_url)
    app.migrate_sync()
    with transaction(app_url) as connection:
        app.schedules.create_sync(name="s", task="t", every="1h", connection=connection)
        app.schedules.create_sync(name="old", task="t", every="1h", connection=connection)
        app.schedules.update_sync("s", queue="q", connection=connection)
        app.schedules.delete_sync("old", connection=connection)
        connection.commit()
    assert [one.queue for one in app.schedules.list_sync().items] == ["q"]
    app.close_sync()


async def test_a_sync_call_refuses_an_async_connection(emptied_postgres_url: str) -> None:
    app = Rota(emptied_postgres_url)
    async with await psycopg.AsyncConnection.connect(emptied_postgres_url) as connection:
        given: dict[str, Any] = {"name": "s", "task": "t", "every": "1h", "connection": connection}
        with pytest.raises(ConfigError, match="was given an async connection"):
            await asyncio.to_thread(app.schedules.create_sync, **given)
        assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
