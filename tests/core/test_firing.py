"""What a schedule does when it is looked at: next fire, missed fires, overlap, jitter and broken rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.ids import is_id
from rota.core.schedules.calendars import Calendar
from rota.core.schedules.firing import MOST_HELD, FireDecision, decide, job_id, start
from rota.model import Schedule

T0 = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
GRACE = 5.0


def hour(n: float) -> datetime:
    return T0 + timedelta(hours=n)


def schedule(**given: Any) -> Schedule:
    rule = {} if {"cron", "every", "at"} & given.keys() else {"cron": "0 * * * *"}
    values = {"id": "s1", "name": "s", "task": "t", "created_at": T0, "updated_at": T0, **rule, **given}
    return Schedule(**values)


def due(**given: Any) -> Schedule:
    """Hourly, its next fire at one o'clock."""
    return schedule(**{"next_run_at": hour(1), "check_at": hour(1), "version": 3, **given})


def fired(found: FireDecision) -> list[tuple[float, str]]:
    return [((fire.at - T0) / timedelta(hours=1), fire.origin) for fire in found.fires]


# --- starting --------------------------------------------------------------------------------------


def test_a_new_schedule_is_due_at_its_next_fire() -> None:
    """Q6: the first next-run is computed at creation."""
    found = start(schedule(), hour(0.5))
    assert (found.next_run_at, found.check_at) == (hour(1), hour(1))


def test_a_disabled_schedule_is_not_checked() -> None:
    found = start(schedule(enabled=False, held=(hour(0),)), hour(0.5))
    assert (found.next_run_at, found.check_at, found.held) == (None, None, ())


def test_starting_again_counts_from_now_and_forgets_what_was_held() -> None:
    """Q6: resume recomputes from now."""
    found = start(due(held=(hour(0),)), hour(7.2))
    assert (found.next_run_at, found.held) == (hour(8), ())


def test_an_interval_keeps_its_beat_whenever_it_is_started() -> None:
    found = start(schedule(every=3600.0, start_at=hour(0.25)), hour(7.3))
    assert found.next_run_at == hour(8.25)


def test_a_schedule_that_is_over_is_never_checked_again() -> None:
    found = start(schedule(every=3600.0, until=hour(3)), hour(4))
    assert (found.next_run_at, found.check_at) == (None, None)


def test_a_schedule_without_a_next_fire_gets_one_and_nothing_fires() -> None:
    """Q6: a row made by hand has its first next-run computed when it is read."""
    found = decide(schedule(), hour(0.5), GRACE)
    assert (found.fires, found.schedule.next_run_at, found.schedule.check_at) == ((), hour(1), hour(1))


# --- firing ----------------------------------------------------------------------------------------


def test_a_due_fire_runs_and_the_schedule_moves_on() -> None:
    found = decide(due(), hour(1) + timedelta(seconds=1), GRACE)
    assert fired(found) == [(1, "scheduler")]
    after = found.schedule
    assert (after.next_run_at, after.check_at, after.last_fire_at) == (hour(2), hour(2), hour(1))


def test_a_single_instant_fires_once_and_is_over() -> None:
    found = decide(due(cron=None, at=hour(1)), hour(1), GRACE)
    assert fired(found) == [(1, "scheduler")]
    assert (found.schedule.next_run_at, found.schedule.check_at) == (None, None)


def test_looking_too_early_changes_nothing() -> None:
    found = decide(due(), hour(0.9), GRACE)
    assert (found.fires, found.schedule.next_run_at) == ((), hour(1))


@pytest.mark.parametrize(
    ("policy", "runs", "dropped"),
    [
        ("skip", [], 5),
        ("latest", [(5, "catchup")], 4),
        ("all", [(1, "catchup"), (2, "catchup"), (3, "catchup"), (4, "catchup"), (5, "catchup")], 0),
    ],
)
def test_missed_fires_follow_the_policy(policy: str, runs: list[Any], dropped: int) -> None:
    """S4: what was missed is caught up; D4: an old fire is not replayed many times."""
    found = decide(due(missed=policy), hour(5.5), GRACE)
    assert (fired(found), found.dropped, found.schedule.next_run_at) == (runs, dropped, hour(6))


def test_the_last_fire_stays_when_nothing_runs() -> None:
    found = decide(due(missed="skip", last_fire_at=hour(0)), hour(5.5), GRACE)
    assert found.schedule.last_fire_at == hour(0)


# --- jitter ----------------------------------------------------------------------------------------


def test_jitter_delays_the_look_and_not_the_fire_time() -> None:
    found = start(schedule(jitter=600.0), hour(0.5))
    assert found.check_at is not None
    assert found.next_run_at == hour(1)
    assert hour(1) < found.check_at < hour(1) + timedelta(seconds=600)


def test_jitter_is_stable_for_a_schedule_and_spread_over_many() -> None:
    looks = [start(schedule(name=f"s{n}", jitter=600.0), hour(0.5)).check_at for n in range(50)]
    assert looks == [start(schedule(name=f"s{n}", jitter=600.0), hour(0.5)).check_at for n in range(50)]
    assert len(set(looks)) == 50


def test_a_fire_waits_for_its_jitter_and_is_then_on_time() -> None:
    before = start(schedule(jitter=3000.0, missed="skip"), hour(0.5))
    assert before.check_at is not None
    early = decide(before, before.check_at - timedelta(seconds=1), GRACE)
    assert (early.fires, early.schedule.check_at) == ((), before.check_at)
    assert fired(decide(before, before.check_at, GRACE)) == [(1, "scheduler")]


# --- overlap ---------------------------------------------------------------------------------------


def test_overlap_allow_runs_beside_the_previous() -> None:
    found = decide(due(), hour(1), GRACE, busy=True)
    assert (fired(found), found.skipped, found.cancel_previous) == ([(1, "scheduler")], 0, False)


def test_overlap_skip_leaves_out_the_fire_and_moves_on() -> None:
    found = decide(due(overlap="skip"), hour(1), GRACE, busy=True)
    assert (fired(found), found.skipped, found.schedule.next_run_at) == ([], 1, hour(2))
    assert found.schedule.last_fire_at is None


def test_overlap_skip_runs_one_of_several_that_are_due() -> None:
    found = decide(due(overlap="skip", missed="all"), hour(3), GRACE)
    assert (len(found.fires), found.skipped) == (1, 2)


def test_overlap_cancel_previous_runs_the_newest() -> None:
    found = decide(due(overlap="cancel_previous", missed="all"), hour(3), GRACE, busy=True)
    assert (fired(found), found.skipped, found.cancel_previous) == ([(3, "scheduler")], 2, True)


def test_nothing_is_cancelled_when_nothing_runs_or_nothing_is_due() -> None:
    assert not decide(due(overlap="cancel_previous"), hour(1), GRACE).cancel_previous
    assert not decide(
        due(overlap="cancel_previous", missed="skip"), hour(1.5), GRACE, busy=True
    ).cancel_previous


def test_overlap_queue_holds_a_fire_back_and_checks_again_soon() -> None:
    found = decide(due(overlap="queue"), hour(1), GRACE, busy=True)
    after = found.schedule
    assert (found.fires, after.held, after.next_run_at) == ((), (hour(1),), hour(2))
    assert after.check_at == hour(1) + timedelta(seconds=1)


def test_held_fires_are_released_one_by_one_oldest_first() -> None:
    waiting = due(overlap="queue", held=(hour(1), hour(2), hour(3)), next_run_at=hour(4))
    seen: list[float] = []
    for minute in range(3):
        found = decide(waiting, hour(3) + timedelta(minutes=1 + minute), GRACE)
        seen += [at for at, _ in fired(found)]
        waiting = found.schedule
    assert seen == [1, 2, 3]
    assert (waiting.held, waiting.check_at) == ((), hour(4))


def test_a_fire_that_is_due_waits_behind_the_held_ones() -> None:
    found = decide(due(overlap="queue", held=(hour(0),)), hour(1), GRACE)
    assert ([at for at, _ in fired(found)], found.schedule.held) == ([0], (hour(1),))


def test_only_so_many_fires_are_held() -> None:
    full = due(overlap="queue", held=tuple(hour(n) for n in range(-MOST_HELD, 0)))
    found = decide(full, hour(1), GRACE, busy=True)
    assert (len(found.schedule.held), found.schedule.held[-1], found.skipped) == (MOST_HELD, hour(1), 1)


def test_held_fires_are_released_after_the_schedule_is_over() -> None:
    over = due(cron=None, at=hour(1), overlap="queue", next_run_at=None, held=(hour(1),))
    found = decide(over, hour(2), GRACE)
    assert [at for at, _ in fired(found)] == [1]
    assert (found.schedule.check_at, found.schedule.held) == (None, ())


# --- calendars -------------------------------------------------------------------------------------

HOLIDAYS = Calendar(name="holidays", dates=frozenset({date(2026, 3, 3)}))


def test_a_calendar_skips_the_fires_of_a_day() -> None:
    daily = schedule(cron="0 8 * * *", calendar="holidays")
    assert start(daily, hour(9), HOLIDAYS).next_run_at == hour(48 + 8)


def test_a_calendar_moves_a_fire_to_the_next_working_day() -> None:
    weekly = schedule(cron="0 8 * * TUE", calendar="holidays", calendar_mode="next_working_day")
    assert start(weekly, hour(9), HOLIDAYS).next_run_at == hour(48 + 8)


def test_a_day_that_became_a_holiday_after_the_fire_was_computed_does_not_fire() -> None:
    before = schedule(cron="0 8 * * *", calendar="holidays", next_run_at=hour(32), check_at=hour(32))
    found = decide(before, hour(32), GRACE, HOLIDAYS)
    assert (found.fires, found.schedule.next_run_at) == ((), hour(48 + 8))


def test_a_calendar_that_is_gone_disables_rather_than_fires_on_holidays() -> None:
    found = decide(due(calendar="holidays"), hour(1), GRACE, None)
    assert found.fires == ()
    assert found.broken is not None
    assert "no calendar named 'holidays'" in found.broken


# --- broken rows -----------------------------------------------------------------------------------

BROKEN: dict[str, dict[str, Any]] = {
    "cron": {"cron": "99 * * * *"},
    "no rule": {"cron": None},
    "two rules": {"every": 60.0, "cron": "0 * * * *"},
    "zone": {"timezone": "Mars/Olympus"},
    "every": {"cron": None, "every": 0.0},
    "span": {"start_at": hour(5), "until": hour(1)},
    "missed": {"missed": "sometimes"},
    "cap": {"missed_cap": 0},
    "window": {"missed_window": -1.0},
    "overlap": {"overlap": "perhaps"},
    "mode": {"calendar_mode": "perhaps"},
    "jitter": {"jitter": -5.0},
}


@pytest.mark.parametrize("given", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("known", [True, False], ids=["due", "by hand"])
def test_a_broken_row_is_disabled_with_its_reason(given: dict[str, Any], known: bool) -> None:
    row = msgspec.structs.replace(due(), **given)
    found = decide(row if known else msgspec.structs.replace(row, next_run_at=None), hour(1), GRACE)
    after = found.schedule
    assert (found.fires, after.enabled, after.check_at) == ((), False, None)
    assert after.reason
    assert after.reason == found.broken


# --- ids and properties ----------------------------------------------------------------------------


def test_the_job_of_a_fire_has_one_possible_id() -> None:
    ids = {job_id(schedule_id, hour(n)) for schedule_id in ("a", "b") for n in range(100)}
    assert len(ids) == 200
    assert all(map(is_id, ids))
    assert job_id("a", hour(1)) == job_id("a", hour(1).astimezone(timezone(timedelta(hours=5))))


@examples(100)
@given(
    every=st.sampled_from([60.0, 900.0, 3600.0, 86400.0]),
    policy=st.sampled_from(["skip", "latest", "all"]),
    overlap=st.sampled_from(["allow", "skip", "queue", "cancel_previous"]),
    jitter=st.sampled_from([0.0, 45.0]),
    looks=st.lists(st.tuples(st.floats(1, 200_000), st.booleans()), min_size=1, max_size=12),
)
def test_however_often_it_is_checked_no_fire_runs_twice_and_time_advances(
    every: float, policy: str, overlap: str, jitter: float, looks: list[tuple[float, bool]]
) -> None:
    row = start(schedule(every=every, cron=None, missed=policy, overlap=overlap, jitter=jitter), T0)
    now, ran, lost = T0, [], 0
    for pause, busy in looks:
        now += timedelta(seconds=pause)
        found = decide(row, now, GRACE, busy=busy)
        ran += [fire.at for fire in found.fires]
        lost += found.dropped + found.skipped
        row = found.schedule
        assert row.next_run_at is not None
        assert row.check_at is not None
        assert row.check_at > now
        assert all(fire.at <= now for fire in found.fires)
        assert overlap == "allow" or len(found.fires) <= 1
    assert ran == sorted(set(ran))
    passed = (row.next_run_at - T0) // timedelta(seconds=every) - 1
    assert len(ran) + len(row.held) + lost == passed
