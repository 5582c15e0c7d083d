"""iCalendar texts: the dates of their events, or the line that is wrong."""

from __future__ import annotations

import time
import tracemalloc
from datetime import date, timedelta

import pytest
from effort import LONG, examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.schedules import ics as ics_module
from rota.core.schedules.calendars import parse_ics
from rota.core.schedules.rrule import Yearly
from rota.errors import InvalidSchedule


def ics(*lines: str) -> str:
    return "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", *lines, "END:VCALENDAR", ""])


def event(*lines: str) -> str:
    return "\r\n".join(["BEGIN:VEVENT", *lines, "END:VEVENT"])


def dates(*lines: str, since: date | None = None) -> list[str]:
    return sorted(day.isoformat() for day in parse_ics(ics(event(*lines)), "x", since).dates)


def days(first: date, n: int) -> list[str]:
    return [(first + timedelta(days=i)).isoformat() for i in range(n)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["DTSTART;VALUE=DATE:20261225"], ["2026-12-25"]),
        (["DTSTART;VALUE=DATE:20261225", "DTEND;VALUE=DATE:20261227"], ["2026-12-25", "2026-12-26"]),
        (["DTSTART;VALUE=DATE:20261225", "DTEND;VALUE=DATE:20261225"], ["2026-12-25"]),
        (["DTSTART:20261225T080000Z", "DTEND:20261225T090000Z"], ["2026-12-25"]),
        (
            ["DTSTART;TZID=Europe/Berlin:20261225T220000", "DTEND:20261226T020000"],
            ["2026-12-25", "2026-12-26"],
        ),
        (["DTSTART:20261225T000000", "DTEND:20261226T000000"], ["2026-12-25"]),
        (['DTSTART;X-A="a:b;c":20261225'], ["2026-12-25"]),
        (["dtstart;value=date:20261225", "duration:P2D"], ["2026-12-25", "2026-12-26"]),
        (["DTSTART;VALUE=DATE:20261225", "DURATION:P1W"], days(date(2026, 12, 25), 7)),
        (["DTSTART:20261225T080000Z", "DURATION:PT1H30M"], ["2026-12-25"]),
        (["DTSTART;VALUE=DATE:20261225", "STATUS:CANCELLED"], []),
        (
            ["DTSTART;VALUE=DATE:20261225", "RDATE;VALUE=DATE:20270101,20270106"],
            ["2026-12-25", "2027-01-01", "2027-01-06"],
        ),
        (["DTSTART;VALUE=DATE:2026", " 1225"], ["2026-12-25"]),
        (["SUMMARY:Christ", "\tmas: a day", "DTSTART:20261225"], ["2026-12-25"]),
        (["DTSTART:20261225", "BEGIN:VALARM", "DTSTART:20200101", "END:VALARM"], ["2026-12-25"]),
        (["DTSTART:20261225", "RRULE:FREQ=YEARLY;COUNT=2"], ["2026-12-25", "2027-12-25"]),
        (
            ["DTSTART:20261225", "RRULE:FREQ=YEARLY;UNTIL=20281225T000000Z", "EXDATE:20271225"],
            ["2026-12-25", "2028-12-25"],
        ),
        (
            ["DTSTART:20240229", "RRULE:FREQ=YEARLY;UNTIL=20330101"],
            ["2024-02-29", "2028-02-29", "2032-02-29"],
        ),
        (
            ["DTSTART:20261126", "RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH;COUNT=3"],
            ["2026-11-26", "2027-11-25", "2028-11-23"],
        ),
        (
            ["DTSTART:20260525", "RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO;COUNT=3"],
            ["2026-05-25", "2027-05-31", "2028-05-29"],
        ),
        (
            ["DTSTART:20261231", "RRULE:FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=-1;INTERVAL=2;COUNT=2"],
            ["2026-12-31", "2028-12-31"],
        ),
        (
            ["DTSTART:20260501", "RRULE:FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=1;COUNT=2"],
            ["2026-05-01", "2027-05-01"],
        ),
    ],
)
def test_the_dates_of_an_event(lines: list[str], expected: list[str]) -> None:
    assert dates(*lines) == expected


def test_a_yearly_event_is_written_out_for_twenty_years() -> None:
    assert len(dates("DTSTART:20261225", "RRULE:FREQ=YEARLY")) == 21
    old = dates("DTSTART:19701225", "RRULE:FREQ=YEARLY", since=date(2026, 6, 1))
    assert (old[0], old[1], old[-1]) == ("1970-12-25", "2025-12-25", "2046-12-25")


def test_other_components_are_passed_over() -> None:
    zone = [
        "BEGIN:VTIMEZONE",
        "BEGIN:STANDARD",
        "DTSTART:19701025T030000",
        "RRULE:FREQ=DAILY",
        "END:STANDARD",
        "END:VTIMEZONE",
    ]
    assert parse_ics(ics(*zone, event("DTSTART:20260101")), "x").dates == {date(2026, 1, 1)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "line 1: 'hello' is not a 'NAME:value' line"),
        ("BEGIN:VEVENT\nEND:VEVENT", "line 1: found BEGIN outside a calendar"),
        (ics("BEGIN:VEVENT"), "line 4: END:VCALENDAR does not close BEGIN:VEVENT"),
        ("BEGIN:VCALENDAR\n\nBEGIN:VEVENT\nDTSTART:20260101", "line 3: BEGIN:VEVENT has no END"),
        (ics(event("SUMMARY:x")), "line 3: the event has no DTSTART"),
        (ics(event("DTSTART:20260230")), "line 4: '20260230' is not a date"),
        (ics(event("DTSTART:99990101")), "line 4: '99990101' is not a date"),
        (ics(event("DTSTART:20260102", "DTEND:20260101")), "line 5: DTEND 20260101 is before DTSTART"),
        (ics(event("DTSTART:20260102", "DTEND:20290101")), "line 5: the event lasts 1095 days"),
        (ics(event("DTSTART:20260102", "DURATION:1 day")), "line 5: DURATION '1 day' is not understood"),
        (ics(event("DTSTART:20260102", "RRULE:FREQ=DAILY")), "line 5: RRULE FREQ=DAILY is not understood"),
        (ics(event("DTSTART:20260102", "RRULE:FREQ=YEARLY;BYWEEKNO=3")), "line 5: RRULE BYWEEKNO is not"),
        (ics(event("DTSTART:20260102", "RRULE:FREQ=YEARLY;BYDAY=TH")), "line 5: RRULE BYDAY=TH is not"),
        (ics(event("DTSTART:20260102", "RRULE:FREQ=YEARLY;INTERVAL=0")), "line 5: RRULE INTERVAL=0 is not"),
        (
            ics(event("DTSTART:20260102", "RRULE:FREQ=YEARLY;UNTIL=20261301")),
            "line 5: RRULE UNTIL=20261301 is not a date",
        ),
        pytest.param("x" * (2 << 20), "at most 1048576 bytes", id="two megabytes"),
        pytest.param("é" * (1 << 20), "at most 1048576 bytes", id="two megabytes of accents"),
    ],
)
def test_a_wrong_text_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        parse_ics(text, "x")


def test_too_many_events_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ics_module.MOST_EVENTS == 10_000
    monkeypatch.setattr(ics_module, "MOST_EVENTS", 3)
    assert parse_ics(ics(*[event("DTSTART:20260101")] * 3), "x").dates
    with pytest.raises(InvalidSchedule, match="line 12: more than 3 events"):
        parse_ics(ics(*[event("DTSTART:20260101")] * 4), "x")


def test_a_calendar_needs_a_name() -> None:
    with pytest.raises(InvalidSchedule, match="calendar name ''"):
        parse_ics(ics(), "")


@pytest.mark.skipif(not LONG, reason="takes seconds: make long")
def test_the_largest_calendar_is_read_in_bounded_time() -> None:
    lines = [
        event(f"DTSTART:{1990 + i % 30}0101", "DURATION:P366D", "RRULE:FREQ=YEARLY") for i in range(9_000)
    ]
    began = time.process_time()
    with pytest.raises(InvalidSchedule, match="more than 300000 dates"):
        parse_ics(ics(*lines), "x", since=date(2026, 1, 1))
    plain = [event(f"DTSTART:{1990 + i % 30}0101", "RRULE:FREQ=YEARLY") for i in range(9_000)]
    assert len(parse_ics(ics(*plain), "x", since=date(2026, 1, 1)).dates) > 20
    assert time.process_time() - began < 20


LINES = """
BEGIN:VCALENDAR|BEGIN:VEVENT|END:VEVENT|END:VCALENDAR|DTSTART:20260101|DTEND:2026010| 2|;:|RRULE:FREQ=YEARLY
RRULE:;=;|EXDATE:20260101,|DURATION:P|RDATE:x|STATUS:|A;B="c:D
""".strip().replace("\n", "|").split("|")  # fmt: skip


@examples(300)
@given(st.lists(st.sampled_from(LINES) | st.text(max_size=20), max_size=15))
def test_any_text_raises_only_invalid_schedule(lines: list[str]) -> None:
    for text in ("\n".join(lines), ics(event(*lines))):
        try:
            parse_ics(text, "x")
        except InvalidSchedule:
            continue


def test_too_many_dates_are_refused_before_they_are_written_out() -> None:
    first = date(1900, 1, 1)
    listed = ",".join(f"{first + timedelta(days=i):%Y%m%d}" for i in range(20_000))
    bomb = ics(event("DTSTART:20200101", "DURATION:P366D", f"RDATE:{listed}"))  # 7.3 million dates
    tracemalloc.start()
    try:
        with pytest.raises(InvalidSchedule, match="more than 300000 dates; split the calendar in parts"):
            parse_ics(bomb, "x")
        assert tracemalloc.get_traced_memory()[1] < 30 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("start", [date(1904, 2, 29), date(1950, 12, 25), date(2026, 1, 1)])
@pytest.mark.parametrize(
    "rule", [Yearly(), Yearly(interval=7), Yearly(times=90), Yearly(until=date(2030, 6, 1))]
)
def test_past_years_are_passed_over_without_a_change(start: date, rule: Yearly) -> None:
    every = list(rule.dates(start, 1900, 2046))
    assert list(rule.dates(start, 2025, 2046)) == [day for day in every if day.year >= 2025]
