"""Durations as people write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rota import OptionError, Snooze
from rota.core.jobs.options import options
from rota.durations import read, seconds, short


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (90, 90.0),
        (0.25, 0.25),
        (timedelta(minutes=1), 60.0),
        ("90", 90.0),
        ("90s", 90.0),
        ("1.5s", 1.5),
        ("15m", 900.0),
        ("15 min", 900.0),
        ("1h30m", 5400.0),
        ("1H 30M", 5400.0),
        ("2d", 172800.0),
        ("1w", 604800.0),
    ],
)
def test_a_duration_is_read_in_every_form(value: Any, expected: float) -> None:
    assert read(value) == expected
    assert options({"delay": value, "timeout": value}).delay == expected
    assert options({"delay": value, "timeout": value}).timeout == expected
    assert Snooze(value).seconds == expected


@pytest.mark.parametrize(
    "value", ["", "soon", "m15", "15x", "1m1h", True, None, [], float("nan"), float("inf")]
)
def test_what_is_no_duration_is_refused(value: Any) -> None:
    assert read(value) is None


def test_a_wrong_duration_names_the_option_and_what_it_takes() -> None:
    with pytest.raises(
        OptionError, match=r"delay='soon': is not a duration; give seconds or text such as '15m'"
    ):
        options({"delay": "soon"})
    with pytest.raises(
        OptionError, match=r"delay=-1: is out of range; choose a duration from 0 s to 36500 d"
    ):
        options({"delay": -1})
    with pytest.raises(OptionError, match=r"timeout='31d': is out of range; .* from 0\.001 s to 30 d"):
        options({"timeout": "31d"})
    with pytest.raises(ValueError, match="x='9': is out of range"):
        seconds("x", "9", 1, 5)


def test_a_snooze_says_how_long() -> None:
    assert str(Snooze("1h30m")) == "snoozed for 1 h 30 min"
    assert short(7.999999999998) == "8 s"
