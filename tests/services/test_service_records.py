"""Records of services: when one is late or stuck, and who learns of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from rota.errors import StoreUnavailable
from rota.runtime import service, service_records
from rota.runtime.service_records import (
    LATE_S,
    STUCK_S,
    ServiceRecord,
    ServiceRecords,
    listener_status,
)

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


class Time:
    """The monotonic clock of the records."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(service_records, "monotonic", time)
    return time


def test_a_service_is_late_a_minute_after_its_next_pass_was_due(time: Time) -> None:
    record = ServiceRecord("rescue")
    record.began()
    record.worked(next_in_s=6.0)
    time.at += 6.0 + LATE_S
    assert record.state == "ok"
    time.at += 0.1
    assert record.state == "late"
    record.worked()
    assert record.state == "ok"


def test_a_service_that_never_succeeded_becomes_late(time: Time) -> None:
    record = ServiceRecord("gates")
    assert record.status(NOW).succeeded_at is None and record.state == "ok"
    time.at += LATE_S + 0.1
    assert record.state == "late"


def test_one_pass_that_lasts_too_long_is_stuck(time: Time) -> None:
    record = ServiceRecord("scheduler")
    record.began()
    time.at += STUCK_S + 0.1
    assert record.state == "stuck"
    record.worked()
    assert record.state == "ok"


def test_a_service_that_fails_for_hours_is_late_and_not_stuck(time: Time) -> None:
    record = ServiceRecord("gates")
    for _ in range(100):
        record.began()
        record.failed(StoreUnavailable("gone"))
        time.at += 60.0
    assert (record.state, record.status(NOW).error) == ("late", "gone")
    record.worked()
    assert (record.state, record.status(NOW).error) == ("ok", None)


def test_a_service_that_ended_by_an_error_is_stuck(time: Time) -> None:
    record = ServiceRecord("heartbeat")
    record.worked()
    record.ended(RuntimeError("no more threads"))
    assert (record.state, record.status(NOW).error) == ("stuck", "no more threads")


def test_statuses_are_in_the_time_of_the_store(time: Time) -> None:
    records, record = ServiceRecords(), ServiceRecord("prune")
    with records.showing(record):
        record.worked(600.0)
        time.at += 42.0
        (status,) = records.statuses(NOW)
        assert (status.name, status.succeeded_at) == ("prune", NOW - timedelta(seconds=42))
    assert records.statuses(NOW) == []


def states(records: ServiceRecords) -> dict[str, str]:
    return {one.name: one.state for one in records.statuses(NOW)}


def test_records_name_who_is_late_and_who_is_stuck(time: Time) -> None:
    records, gates, rescue = ServiceRecords(), ServiceRecord("gates"), ServiceRecord("rescue")
    with records.showing(gates), records.showing(rescue):
        rescue.began()
        time.at += STUCK_S + 1
        gates.worked()
        assert (states(records), records.stuck()) == ({"gates": "ok", "rescue": "stuck"}, ["rescue"])
        assert not records.is_store_away
        rescue.failed(StoreUnavailable("gone"))
        assert (states(records), records.stuck()) == ({"gates": "ok", "rescue": "late"}, [])
        assert records.is_store_away
        rescue.failed(ValueError("a defect of its own"))
        assert not records.is_store_away
        rescue.failed(StoreUnavailable("gone"))
        rescue.worked()
        assert not records.is_store_away


def test_a_listener_without_notifications_is_late() -> None:
    assert listener_status(LATE_S, NOW).state == "ok"
    silent = listener_status(LATE_S + 1, NOW)
    assert (silent.state, silent.succeeded_at) == ("late", NOW - timedelta(seconds=LATE_S + 1))


async def test_a_loop_keeps_its_record() -> None:
    record, stop, errors = (
        ServiceRecord("gates"),
        asyncio.Event(),
        [StoreUnavailable("gone"), ValueError("bug")],
    )

    async def tick() -> float:
        if errors:
            raise errors.pop()
        stop.set()
        return 0.0

    async with asyncio.timeout(10):
        await service.repeat(tick, stop, record)
    assert record.succeeded_at is not None and record.status(NOW).error is None


@pytest.mark.parametrize("stuck", [False, True])
async def test_the_watchdog_of_systemd_follows_stuck_services(
    monkeypatch: pytest.MonkeyPatch, stuck: bool
) -> None:
    sent: list[str] = []
    stop = asyncio.Event()

    def notify(*lines: str) -> bool:
        sent.extend(lines)
        stop.set()
        return True

    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    monkeypatch.setattr(service.systemd, "notify", notify)
    async with asyncio.timeout(10):
        await service.watchdog(stop, lambda: ["rescue"] if stuck else [])
    assert sent == (["STATUS=stuck: rescue"] if stuck else ["WATCHDOG=1"])
