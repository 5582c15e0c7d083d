"""Rules in words, and previews that say what the clocks do."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from rota.core.schedules.calendars import Calendar
from rota.core.schedules.describe import preview, preview_with_calendar, summary
from rota.core.schedules.rules import parse
from rota.errors import InvalidSchedule

NEW_YORK = "America/New_York"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cron": "0 8 * * 1-5", "timezone": NEW_YORK}, "At 08:00, Monday through Friday, New York time"),
        ({"cron": "0 8 * * *"}, "At 08:00, every day, UTC"),
        ({"cron": "@weekly"}, "At 00:00, Sunday, UTC"),
        ({"cron": "*/15 * * * *", "timezone": NEW_YORK}, "Every 15 minutes"),
        ({"cron": "* * * * *"}, "Every minute"),
        ({"cron": "@hourly"}, "Every hour"),
        ({"cron": "0 */2 * * *"}, "Every 2 hours, UTC"),
        ({"cron": "*/10 * * * * *"}, "Every 10 seconds"),
        ({"cron": "*/7 * * * *"}, "Every seventh minute of every hour, UTC"),
        ({"cron": "0 9 * * FRIL"}, "At 09:00 on the last Friday of the month, UTC"),
        ({"cron": "0 9 * * MON#2"}, "At 09:00 on the second Monday of the month, UTC"),
        ({"cron": "0 9 L * *"}, "At 09:00 on the last day of every month, UTC"),
        ({"cron": "0 0 13 * FRI"}, "At 00:00 on the 13th day of month and every Friday, UTC"),
        ({"cron": "0 0 * * FRI-MON"}, "At 00:00, Friday, Saturday, Sunday, and Monday, UTC"),
        ({"every": 900}, "Every 15 minutes"),
        ({"every": "1d"}, "Every day"),
        ({"every": "10d"}, "Every 10 days"),
        ({"every": 1.5}, "Every 1.5 seconds"),
        ({"every": "1h30m", "start_at": "2030-01-01T00:00Z"}, "Every 1 h 30 min from 2030-01-01 00:00 UTC"),
        ({"every": "1h", "until": "2030-01-01T00:00:30Z"}, "Every hour, until 2030-01-01 00:00:30 UTC"),
        ({"at": "2030-01-01T10:00Z", "timezone": "Asia/Tokyo"}, "Once, at 2030-01-01 19:00 Tokyo time"),
        (
            {"cron": "@daily", "start_at": "2030-01-01T00:00Z", "until": "2031-01-01T00:00Z"},
            "At 00:00, every day, UTC, from 2030-01-01 00:00 UTC, until 2031-01-01 00:00 UTC",
        ),
    ],
)
def test_summary_of_a_rule(given: dict[str, Any], said: str) -> None:
    assert summary(parse(**given)) == said


def notes(text: str, timezone: str, after: datetime, n: int) -> list[tuple[str, str | None]]:
    fires = preview(parse(cron=text, timezone=timezone), after, n)
    assert all(fire.at == fire.local.astimezone(UTC) for fire in fires)
    return [(f"{fire.local:%m-%d %H:%M}", fire.note) for fire in fires]


def test_a_preview_notes_where_the_clock_jumps_over_a_run() -> None:
    assert notes("30 2 * * *", NEW_YORK, datetime(2026, 3, 7, 12, tzinfo=UTC), 2) == [
        ("03-08 03:00", "clocks go forward 1 h on 2026-03-08 at 02:00: 02:30 does not exist, runs at 03:00"),
        ("03-09 02:30", None),
    ]


def test_a_preview_notes_which_of_two_equal_times_runs() -> None:
    assert notes("30 1 * * *", NEW_YORK, datetime(2026, 10, 31, 12, tzinfo=UTC), 3) == [
        ("11-01 01:30", "01:30 happens twice: runs the first time"),
        ("11-02 01:30", "clocks go back 1 h on 2026-11-01 at 02:00 before this run"),
        ("11-03 01:30", None),
    ]


def test_a_preview_notes_when_both_run() -> None:
    assert notes("0 * * * *", NEW_YORK, datetime(2026, 11, 1, 4, tzinfo=UTC), 3) == [
        ("11-01 01:00", "01:00 happens twice: runs both times, this is the first"),
        ("11-01 01:00", "01:00 happens twice: runs both times, this is the second"),
        ("11-01 02:00", None),
    ]


def test_a_preview_names_a_coming_change_that_does_not_bite() -> None:
    assert notes("0 8 * * *", NEW_YORK, datetime(2026, 3, 7, tzinfo=UTC), 3) == [
        ("03-07 08:00", None),
        ("03-08 08:00", "clocks go forward 1 h on 2026-03-08 at 02:00 before this run"),
        ("03-09 08:00", None),
    ]


def test_a_preview_of_an_interval_names_the_change_too() -> None:
    rule = parse(every="12h", timezone=NEW_YORK, start_at="2026-03-07T18:00Z")
    assert [fire.note is None for fire in preview(rule, datetime(2026, 3, 7, tzinfo=UTC), 4)] == [
        True,
        True,
        False,
        True,
    ]


def test_a_preview_ends_with_the_rule() -> None:
    rule = parse(cron="0 8 * * *", until="2026-03-02T08:00:00Z")
    assert len(preview(rule, datetime(2026, 3, 1, tzinfo=UTC), 10)) == 2


@pytest.mark.parametrize("n", [-1, 1001])
def test_an_endless_preview_is_refused(n: int) -> None:
    with pytest.raises(InvalidSchedule, match="at most 1000"):
        preview(parse(every=60), datetime(2026, 1, 1, tzinfo=UTC), n)


def test_a_preview_with_a_calendar_notes_which_runs_were_moved() -> None:
    christmas = Calendar(name="de", dates=frozenset({date(2026, 12, 25)}))
    rule = parse(cron="0 9 24,25 * *")
    fires = preview_with_calendar(rule, christmas, "next_working_day", datetime(2026, 12, 1, tzinfo=UTC), 3)
    assert [(f"{fire.at:%m-%d}", fire.note) for fire in fires] == [
        ("12-24", None),
        ("12-28", "moved to a working day by calendar de"),
        ("01-25", None),
    ]
