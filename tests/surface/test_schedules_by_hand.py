"""Rows of schedules written and edited by hand: no fire of theirs is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from by_hand import by_hand, tick

from rota import Rota
from rota.model import Firing
from rota.testing import FakeClock

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


async def written(app: Rota, url: str, when: datetime = NOON, **columns: Any) -> None:
    """A row as an INSERT at this time would make it."""
    await app.schedules.list()  # the tables are there
    row = {"name": "hand", "task": "t", "created_at": when, "updated_at": when, **columns}
    marks = ", ".join("?" * len(row))
    by_hand(url, f"INSERT INTO {{table}} ({', '.join(row)}) VALUES ({marks})", *row.values())


async def runs(app: Rota) -> list[tuple[datetime | None, str]]:
    items = (await app.schedules.runs("hand")).items
    return sorted((run.scheduled_for, run.triggered_by) for run in items)


async def test_a_row_made_by_hand_gets_its_next_fire_and_runs(still_app: Rota, app_url: str) -> None:
    """Q6: the first next-run is computed when it is missing."""
    await written(still_app, app_url, cron="0 * * * *")
    await tick(still_app)
    made = await still_app.schedules.get("hand")
    assert (made.enabled, made.next_run_at) == (True, NOON + HOUR)
    await tick(still_app, 3600)
    assert await runs(still_app) == [(NOON + HOUR, "scheduler")]


async def test_a_row_counts_from_its_creation_not_from_the_first_look(still_app: Rota, app_url: str) -> None:
    await written(still_app, app_url, NOON - 2.5 * HOUR, cron="0 * * * *", missed="all")
    await tick(still_app)
    expected = [(NOON - 2 * HOUR, "catchup"), (NOON - HOUR, "catchup"), (NOON, "scheduler")]
    assert await runs(still_app) == expected


async def test_the_store_itself_notes_when_a_row_was_written(make_app: Any, app_url: str) -> None:
    app = make_app(app_url)
    await app.schedules.list()
    before = await (await app.stores.get()).clock() - timedelta(seconds=1)
    by_hand(app_url, "INSERT INTO {table} (name, task, cron) VALUES (?, ?, ?)", "hand", "t", "0 0 1 1 *")
    made = await app.schedules.get("hand")
    assert before <= made.updated_at <= before + timedelta(minutes=5)
    old = before - timedelta(days=1)
    by_hand(app_url, "UPDATE {table} SET updated_at = ?", old)
    assert (await app.schedules.get("hand")).updated_at == old
    by_hand(app_url, "UPDATE {table} SET cron = ?", "0 0 2 1 *")
    assert before <= (await app.schedules.get("hand")).updated_at <= before + timedelta(minutes=5)


async def test_an_edit_of_other_fields_before_the_first_look_loses_no_fire(
    still_app: Rota, app_url: str
) -> None:
    await written(still_app, app_url, NOON - 1.5 * HOUR, cron="0 * * * *", missed="all")
    by_hand(app_url, "UPDATE {table} SET description = ?", "new")
    await tick(still_app)
    assert await runs(still_app) == [(NOON - HOUR, "catchup"), (NOON, "scheduler")]


async def test_a_single_run_a_moment_ahead_is_not_lost(still_app: Rota, app_url: str) -> None:
    at = NOON - timedelta(seconds=1.5)
    await written(still_app, app_url, NOON - timedelta(seconds=2), at=at)
    await tick(still_app)
    assert await runs(still_app) == [(at, "scheduler")]


@pytest.mark.parametrize("rule", [{"at": NOON}, {"start_at": NOON, "every": 3600.0}], ids=["at", "start_at"])
async def test_a_time_that_was_now_when_the_row_was_written_fires(
    still_app: Rota, app_url: str, rule: dict[str, Any]
) -> None:
    """In SQL, now() is when the transaction began; a program reads its clock before it writes."""
    await written(still_app, app_url, NOON + timedelta(seconds=2), **rule)
    await tick(still_app, 3)
    assert await runs(still_app) == [(NOON, "scheduler")]


@pytest.mark.parametrize("rule", [{"at": NOON - HOUR}, {"cron": "0 * * * *", "until": NOON - HOUR}])
async def test_a_row_whose_time_was_over_is_disabled_with_the_reason(
    still_app: Rota, app_url: str, rule: dict[str, Any]
) -> None:
    await written(still_app, app_url, **rule)
    await tick(still_app)
    made = await still_app.schedules.get("hand")
    assert not made.enabled
    assert "its time is over" in (made.reason or "")


async def test_a_pause_undone_by_hand_counts_from_then(still_app: Rota, app_url: str) -> None:
    """Q6: resume recomputes from now."""
    app = still_app
    await app.schedules.create(name="hand", task="t", cron="0 * * * *", missed="all")
    await app.schedules.disable("hand", reason="moving")
    await tick(app, 5 * 3600)
    by_hand(app_url, "UPDATE {table} SET enabled = ?, updated_at = ?", True, app.clock.now())
    await tick(app)
    await tick(app, 3600)
    assert await runs(app) == [(NOON + 6 * HOUR, "scheduler")]
    assert (await app.schedules.get("hand")).reason is None


async def test_a_rule_changed_by_hand_counts_from_the_edit(still_app: Rota, app_url: str) -> None:
    app = still_app
    await app.schedules.create(name="hand", task="t", cron="0 * * * *", missed="all")
    edited_at = NOON + HOUR / 2
    by_hand(app_url, "UPDATE {table} SET cron = ?, updated_at = ?", "45 * * * *", edited_at)
    await tick(app, 2 * 3600)
    expected = [(NOON + 0.75 * HOUR, "catchup"), (NOON + 1.75 * HOUR, "catchup")]
    assert await runs(app) == expected


async def test_setting_a_column_to_what_it_was_changes_no_fire(still_app: Rota, app_url: str) -> None:
    before = await still_app.schedules.create(name="hand", task="t", cron="0 * * * *")
    by_hand(app_url, "UPDATE {table} SET enabled = ?, cron = ?", True, "0 * * * *")
    after = await still_app.schedules.get("hand")
    assert (after.next_run_at, after.check_at) == (before.next_run_at, before.check_at)


@pytest.mark.parametrize("minutes", [20, 100], ids=["earlier", "later"])
async def test_a_next_run_set_by_hand_fires_then_once_and_the_rule_continues(
    still_app: Rota, app_url: str, minutes: int
) -> None:
    app, moved = still_app, NOON + timedelta(minutes=minutes)
    await app.schedules.create(name="hand", task="t", cron="0 * * * *")
    by_hand(app_url, "UPDATE {table} SET next_run_at = ?", moved)
    assert (await app.schedules.get("hand")).next_run_at == moved
    (first, second) = await app.schedules.preview("hand", 2)
    assert (first.at, first.note, second.at > moved) == (moved, "set by hand", True)
    for _ in range(15):
        await tick(app, 600)
    following = [NOON + n * HOUR for n in (1, 2) if NOON + n * HOUR > moved]
    assert await runs(app) == [(at, "scheduler") for at in (moved, *following)]


async def test_a_next_run_set_by_hand_fires_again_what_was_over(still_app: Rota, app_url: str) -> None:
    app = still_app
    await app.schedules.create(name="hand", task="t", at=NOON + HOUR)
    await tick(app, 3600)
    by_hand(app_url, "UPDATE {table} SET next_run_at = ?", NOON + 2 * HOUR)
    await tick(app, 3600)
    await tick(app, 3600)
    assert [at for at, _ in await runs(app)] == [NOON + HOUR, NOON + 2 * HOUR]


async def test_a_row_may_name_its_first_run(still_app: Rota, app_url: str) -> None:
    first = NOON + timedelta(minutes=7)
    await written(still_app, app_url, cron="0 * * * *", next_run_at=first)
    await tick(still_app, 3600)
    assert [at for at, _ in await runs(still_app)] == [NOON + HOUR]  # the latest of the two
    by_hand(app_url, "UPDATE {table} SET next_run_at = NULL")
    await tick(still_app)
    assert (await still_app.schedules.get("hand")).next_run_at == NOON + 2 * HOUR


async def test_a_row_made_during_a_pause_catches_up_afterwards(still_app: Rota, app_url: str) -> None:
    app = still_app
    await written(app, app_url, NOON - HOUR / 2, cron="*/30 * * * *", missed="all")
    await app.pause(schedule="hand")
    await tick(app, 60)
    assert await runs(app) == []
    await app.resume(schedule="hand")
    await tick(app, 3600)
    assert len(await runs(app)) == 3


async def test_an_edit_by_hand_is_not_undone_by_a_scheduler_that_read_the_row_before(
    still_app: Rota, app_url: str, clock: FakeClock
) -> None:
    await still_app.schedules.create(name="hand", task="t", cron="0 * * * *")
    clock.advance(3600)
    store = await still_app.stores.get()
    (read,) = (await store.due_schedules(clock.now(), 10)).schedules
    by_hand(app_url, "UPDATE {table} SET description = ?", "mine")
    assert await store.fire([Firing(schedule=read, expected=read.version)], clock.now()) == {read.id}
    assert (await still_app.schedules.get("hand")).description == "mine"


async def test_writes_by_hand_wake_the_scheduler(make_app: Any, app_url: str, until: Any) -> None:
    """It would look again after an hour; the single run is a moment ahead when it is written."""
    app = make_app(app_url)
    ran: list[str] = []

    @app.task
    async def note(what: str) -> None:
        ran.append(what)

    payload = "payload_json" if app_url.startswith("sqlite") else "payload"
    await app.schedules.create(name="yearly", task="note", cron="0 0 29 2 *", payload={"what": "yearly"})
    async with app.running(tick_s=3600.0):
        soon = await (await app.stores.get()).clock() + timedelta(seconds=0.3)
        by_hand(
            app_url,
            f"INSERT INTO {{table}} (name, task, at, {payload}) VALUES ('hand', 'note', ?, ?)",
            soon,
            '{"what": "once"}',
        )
        await until(lambda: ran == ["once"])
        by_hand(app_url, "UPDATE {table} SET next_run_at = ? WHERE name = 'yearly'", soon)
        await until(lambda: ran == ["once", "yearly"])
