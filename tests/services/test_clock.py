"""The clock of tests: it moves when told to, and only forward."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rota.runtime.clock import Clock
from rota.testing import FakeClock


def test_time_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(datetime(2030, 1, 1, tzinfo=UTC))
    before = (clock.now(), clock.monotonic())
    assert (clock.now(), clock.monotonic()) == before
    assert clock.advance(90.5) == before[0] + timedelta(seconds=90.5) == clock.now()
    assert clock.monotonic() == before[1] + 90.5


def test_it_can_stand_in_for_the_real_clock() -> None:
    clock = FakeClock(fraction=0.25)
    assert isinstance(clock, Clock)
    assert (clock.jitter(), clock.is_stale) == (0.25, False)
    clock.fraction = 0.75
    assert clock.jitter() == 0.75


async def test_it_does_not_follow_the_store() -> None:
    clock = FakeClock()
    before = clock.now()

    async def read() -> datetime:
        return datetime(1999, 1, 1, tzinfo=UTC)

    assert await clock.sync(read) == timedelta()
    assert clock.now() == before


def test_it_refuses_to_go_back_and_needs_a_zone() -> None:
    with pytest.raises(ValueError, match="only moves forward"):
        FakeClock().advance(-1)
    with pytest.raises(ValueError, match="no time zone"):
        FakeClock(datetime(2030, 1, 1))
