"""Schedules that cannot be: refused at once with the reason, and rows that were broken by hand."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from by_hand import by_hand, tick

from rota import Rota
from rota.errors import InvalidSchedule, NotFound, OptionError, PayloadError, RotaError
from rota.testing import FakeClock

DAILY = {"cron": "0 3 * * *"}
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "never": ({"cron": "0 0 31 2 *"}, "never"),
    "step of zero": ({"cron": "*/0 * * * *"}, r"\*/0"),
    "ten kilobytes": ({"cron": "1," * 5000 + "1 * * * *"}, "has 10009 characters, at most"),
    "four fields": ({"cron": "0 3 * *"}, "fields"),
    "no text": ({"cron": ""}, "cron"),
    "not text": ({"cron": 5}, "cron"),
    "unknown zone": ({**DAILY, "timezone": "Mars/Olympus"}, "Mars/Olympus"),
    "both": ({**DAILY, "every": 60}, "cron and every were given: keep one"),
    "all three": ({**DAILY, "every": 60, "at": NOON}, "cron and every and at were given"),
    "neither": ({}, "none was given"),
    "until before start": (
        {**DAILY, "start_at": NOON + timedelta(days=2), "until": NOON + timedelta(days=1)},
        "is before start_at",
    ),
    "too often": ({"every": 0.5}, "out of range"),
    "negative": ({"every": -60}, "out of range"),
    "no length": ({"every": "soon"}, "is not a duration"),
    "naive instant": ({"at": datetime(2031, 1, 1)}, "has no time zone"),
    "no instant": ({"at": "tomorrow"}, "is not a date and time"),
    "over": ({"at": NOON - timedelta(hours=1)}, "would never fire: its time is over"),
    "long over": ({**DAILY, "until": NOON - timedelta(days=1)}, "would never fire: its time is over"),
    "missed": ({**DAILY, "missed": "sometimes"}, "missed='sometimes'"),
    "cap": ({**DAILY, "missed": "all", "missed_cap": 0}, "cap=0"),
    "no cap": ({**DAILY, "missed_cap": "many"}, "cap='many'"),
    "window": ({**DAILY, "missed_window": -1}, "missed_window=-1"),
    "overlap": ({**DAILY, "overlap": "perhaps"}, "overlap='perhaps': must be one of allow, skip, queue"),
    "mode": ({**DAILY, "calendar_mode": "later"}, "calendar_mode='later'"),
    "jitter": ({**DAILY, "jitter": -1}, "jitter=-1"),
    "much jitter": ({**DAILY, "jitter": "2d"}, "jitter='2d'"),
    "priority": ({**DAILY, "priority": 10**12}, "priority=1000000000000"),
    "attempts": ({**DAILY, "max_attempts": 0}, "max_attempts=0"),
    "timeout": ({**DAILY, "timeout": -1}, "timeout=-1"),
    "queue": ({**DAILY, "queue": ""}, "queue=''"),
    "description": ({**DAILY, "description": "x" * 2001}, "description: must be text of at most 2000"),
    "no description": ({**DAILY, "description": None}, "description: must be text"),
    "enabled": ({**DAILY, "enabled": "yes"}, "enabled='yes'"),
    "payload": ({**DAILY, "payload": {"when": object()}}, "payload"),
    "large payload": ({**DAILY, "payload": {"x": "y" * 2_000_000}}, "payload"),
    "unknown option": ({**DAILY, "cronn": 1}, "a schedule has no option cronn; did you mean cron?"),
    "strange option": ({**DAILY, "zzz": 1}, "a schedule has no option zzz; it has: task, cron"),
    "option of the task": ({**DAILY, "expires": "1h"}, r"from their task: @app\.task\(expires=…\)"),
    "key": ({**DAILY, "key": "daily"}, "a schedule has no option key; overlap=… decides"),
    "calendar": ({**DAILY, "calendar": "holidays"}, "no calendar named 'holidays': import it first"),
    "no task": ({**DAILY, "task": ""}, "task=''"),
    "name": ({**DAILY, "name": "x" * 201}, "name="),
    "tenant": ({**DAILY, "tenant": ""}, "tenant=''"),
}


@pytest.mark.parametrize(("given", "said"), BAD.values(), ids=BAD)
async def test_bad_input_is_refused_at_once_and_nothing_is_written(
    lite: Rota, given: dict[str, Any], said: str
) -> None:
    began = time.monotonic()
    with pytest.raises((InvalidSchedule, OptionError, NotFound, PayloadError), match=said):
        await lite.schedules.create(**{"name": "s", "task": "t", **given})
    assert time.monotonic() - began < 2
    assert (await lite.schedules.list()).items == []


@pytest.mark.parametrize(
    ("given", "said"),
    [(given, said) for given, said in BAD.values() if given and not {"name", "tenant"} & given.keys()],
)
async def test_a_bad_update_is_refused_and_changes_nothing(
    lite: Rota, given: dict[str, Any], said: str
) -> None:
    before = await lite.schedules.create(name="s", task="t", cron="0 4 * * *", payload={"n": 1})
    with pytest.raises(RotaError, match=said):
        await lite.schedules.update("s", **given)
    assert await lite.schedules.get("s") == before


async def test_an_update_of_nothing_and_an_update_to_no_rule_are_refused(lite: Rota) -> None:
    await lite.schedules.create(name="s", task="t", cron="0 4 * * *")
    with pytest.raises(InvalidSchedule, match="nothing to change was given"):
        await lite.schedules.update("s")
    with pytest.raises(InvalidSchedule, match="none was given"):
        await lite.schedules.update("s", cron=None)


async def test_a_schedule_without_a_task_is_refused(lite: Rota) -> None:
    with pytest.raises(InvalidSchedule, match="schedule 's' names no task"):
        await lite.schedules.create(name="s", cron="0 3 * * *")


async def test_a_payload_that_does_not_fit_a_known_task_is_refused(lite: Rota) -> None:
    @lite.task
    async def send(to: int) -> None: ...

    for payload in (None, {"to": "ada"}, {"whom": 1}):
        with pytest.raises(PayloadError, match="task 'send'"):
            await lite.schedules.create(name="s", task="send", cron="0 3 * * *", payload=payload)
    assert (await lite.schedules.list()).items == []


async def test_a_schedule_that_is_over_is_not_enabled(lite: Rota, clock: FakeClock) -> None:
    await lite.schedules.create(name="s", task="t", at=NOON + timedelta(hours=1))
    await lite.schedules.disable("s")
    clock.advance(2 * 3600)
    with pytest.raises(InvalidSchedule, match="its time is over"):
        await lite.schedules.enable("s")
    assert not (await lite.schedules.get("s")).enabled


# --- rows made or broken by hand -------------------------------------------------------------------


BROKEN: dict[str, tuple[str, Any, str]] = {
    "cron": ("cron", "99 * * * *", "99"),
    "no rule": ("cron", None, "none was given"),
    "two rules": ("every", 60, "cron and every were given"),
    "zone": ("timezone", "Mars/Olympus", "Mars/Olympus"),
    "jitter": ("jitter", -5, "jitter"),
    "missed": ("missed", "sometimes", "missed"),
    "cap": ("missed_cap", -1, "cap"),
    "overlap": ("overlap", "perhaps", "overlap"),
    "mode": ("calendar_mode", "later", "calendar_mode"),
    "calendar": ("calendar", "nowhere", "no calendar named 'nowhere'"),
    "list": ("payload", "[1]", "payload"),
    "text": ("payload", '"{}"', "payload"),
    "nothing": ("payload", "null", "payload"),
}


@pytest.mark.parametrize(("column", "value", "said"), BROKEN.values(), ids=BROKEN)
async def test_a_row_broken_by_hand_is_disabled_with_its_reason_and_harms_no_other(
    still_app: Rota, app_url: str, column: str, value: Any, said: str
) -> None:
    app = still_app
    for name in ("a", "bad", "c"):
        await app.schedules.create(name=name, task="t", cron="0 * * * *")
    if column == "payload" and app_url.startswith("sqlite"):
        column = "payload_json"
    by_hand(app_url, f"UPDATE {{table}} SET {column} = ? WHERE name = ?", value, "bad")
    await tick(app, 3600)
    assert {run.schedule for run in (await app.schedules.runs()).items} == {"a", "c"}
    bad = await app.schedules.get("bad")
    assert (bad.enabled, bad.check_at) == (False, None)
    assert said in (bad.reason or "")


async def test_a_broken_row_can_be_mended_and_enabled(still_app: Rota, app_url: str) -> None:
    app = still_app
    await app.schedules.create(name="bad", task="t", cron="0 * * * *")
    by_hand(app_url, "UPDATE {table} SET cron = ? WHERE name = ?", "nonsense", "bad")
    await tick(app, 3600)
    with pytest.raises(InvalidSchedule, match="nonsense"):
        await app.schedules.enable("bad")
    after = await app.schedules.update("bad", cron="0 * * * *", enabled=True)
    assert (after.enabled, after.reason) == (True, None)
    await tick(app, 3600)
    assert len((await app.schedules.runs("bad")).items) == 1


@pytest.mark.parametrize("column", ["payload_json", "priority", "held", "at", "missed_cap", "every"])
async def test_cells_that_cannot_be_read_harm_no_other(
    make_app: Any, sqlite_url: str, clock: FakeClock, column: str
) -> None:
    """SQLite stores anything anywhere."""
    app = make_app(sqlite_url, clock=clock)
    for name in ("a", "bad", "c"):
        await app.schedules.create(name=name, task="t", cron="0 * * * *")
    by_hand(sqlite_url, f"UPDATE {{table}} SET {column} = ? WHERE name = ?", "{", "bad")
    await tick(app, 3600)
    ran = {run.schedule for run in (await app.schedules.runs()).items}
    assert {"a", "c"} <= ran
    bad = await app.schedules.get("bad")
    if column == "held":
        assert "bad" in ran
    else:
        assert (bad.enabled, "bad" in ran) == (False, False)
        assert column in (bad.reason or "")


async def test_a_bad_row_made_by_hand_is_disabled(still_app: Rota, app_url: str) -> None:
    await still_app.schedules.list()
    by_hand(app_url, "INSERT INTO {table} (name, task, cron) VALUES (?, ?, ?)", "hand", "t", "61 * * * *")
    await tick(still_app)
    made = await still_app.schedules.get("hand")
    assert not made.enabled
    assert "61" in (made.reason or "")


GUARD = {
    "sqlite_url": "CREATE TRIGGER guard BEFORE INSERT ON rota_jobs WHEN NEW.schedule = 'bad' "
    "BEGIN SELECT RAISE(ABORT, 'not here'); END",
    "migrated_postgres_url": "ALTER TABLE rota.queued ADD CONSTRAINT guard CHECK (schedule <> 'bad')",
}


@pytest.fixture(params=GUARD)
def guarded(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A store of its own, and the statement that makes it refuse some jobs."""
    return request.getfixturevalue(request.param), GUARD[request.param]


async def test_jobs_that_the_store_cannot_take_disable_their_schedule_and_harm_no_other(
    make_app: Any, guarded: tuple[str, str], clock: FakeClock
) -> None:
    url, guard = guarded
    app = make_app(url, clock=clock)
    for name in ("a", "bad", "c"):
        await app.schedules.create(name=name, task="t", cron="0 * * * *")
    by_hand(url, guard)
    await tick(app, 3600)
    assert {run.schedule for run in (await app.schedules.runs()).items} == {"a", "c"}
    bad = await app.schedules.get("bad")
    assert not bad.enabled
    assert "its jobs cannot be stored" in (bad.reason or "")
    await tick(app, 3600)
    assert len((await app.schedules.runs()).items) == 4
