"""Clocks: that of a program follows the store's; that of tests moves when told to, and only forward."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from rota.runtime import clock as clock_module
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


def test_it_gives_a_store_its_own_time_and_ignores_the_stores() -> None:
    clock = FakeClock()
    assert clock.store_now == clock.now()
    assert clock.correct(datetime(1999, 1, 1, tzinfo=UTC), 0.0) == 0.0
    assert clock.store_now == clock.now()


# --- the clock of a program ------------------------------------------------------------------------


class Machine:
    """The monotonic clock of a machine, moved by hand."""

    def __init__(self) -> None:
        self.elapsed = 1000.0

    def __call__(self) -> float:
        return self.elapsed


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(clock_module, "monotonic", machine)
    return machine


START = datetime(2030, 1, 1, tzinfo=UTC)


def answered(clock: Clock, machine: Machine, told: datetime, took: float = 0.0) -> float:
    """An answer that took so long told this time."""
    sent_at = machine.elapsed
    machine.elapsed += took
    return clock.correct(told, sent_at)


def off(clock: Clock, at: datetime) -> float:
    """The seconds by which the clock is ahead."""
    return round((clock.now() - at).total_seconds(), 3)


def test_the_store_decides_by_its_own_clock() -> None:
    assert Clock().store_now is None


def test_every_answer_corrects_the_clock_as_far_as_it_proves_it_wrong(machine: Machine) -> None:
    clock = Clock()
    answered(clock, machine, START)
    assert off(clock, START) == 0.0
    assert answered(clock, machine, START + timedelta(seconds=2), took=5) == 0.0  # told in between: no proof
    assert off(clock, START + timedelta(seconds=5)) == 0.0
    moved = answered(clock, machine, START + timedelta(seconds=65), took=1)  # at least a minute ahead
    assert round(moved, 3) == 59.0 and off(clock, START + timedelta(seconds=65)) == 0.0
    moved = answered(clock, machine, START, took=1)  # a store that is behind: at most a second later by now
    assert round(moved, 3) == -65.0 and off(clock, START + timedelta(seconds=1)) == 0.0


def test_a_slow_answer_never_makes_the_clock_worse(machine: Machine) -> None:
    clock = Clock()
    answered(clock, machine, START)
    for quick in (True, False, True, False):
        began = machine.elapsed
        answered(clock, machine, START + timedelta(seconds=began - 1000.0), took=0.01 if quick else 20.0)
        assert abs(off(clock, START + timedelta(seconds=machine.elapsed - 1000.0))) <= 0.01


def test_an_answer_makes_the_clock_fresh(machine: Machine) -> None:
    clock = Clock()
    assert clock.is_stale
    answered(clock, machine, START)
    assert not clock.is_stale
    machine.elapsed += clock_module.REFRESH_S + 1
    assert clock.is_stale


@pytest.mark.skipif(sys.platform != "linux", reason="no such clock")
def test_durations_count_the_time_of_a_suspended_machine() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= clock_module.monotonic() <= time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= Clock().monotonic() <= time.clock_gettime(time.CLOCK_BOOTTIME)
