"""PostgreSQL: schedules written by hand, and firing beside others."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from rota.core.schedules.firing import job_id
from rota.errors import StoreError
from rota.model import Firing, JobFilter, NewJob, PageRequest, Schedule, ScheduleFilter
from rota.store.postgres.store import PostgresStore
from rota.store.postgres.waker import hint_of
from rota.testing.conformance.factories import T0, at, new, new_id

BY_HAND = "INSERT INTO rota.schedules (name, task, cron, timezone) VALUES (%s, %s, %s, 'UTC')"


def rule(name: str, **fields: Any) -> Schedule:
    told: dict[str, Any] = {"id": new_id(), "name": name, "task": "work", "cron": "* * * * *", "check_at": T0}
    return Schedule(**(told | {"next_run_at": T0, "created_at": T0, "updated_at": T0} | fields))


def run(schedule: Schedule, **fields: Any) -> NewJob:
    told = {"schedule": schedule.name, "tenant": schedule.tenant, "scheduled_for": T0}
    return new(**(told | {"id": job_id(schedule.id, T0)} | fields))


def moved(schedule: Schedule, *jobs: NewJob) -> Firing:
    after = {**{name: getattr(schedule, name) for name in Schedule.__struct_fields__}, "check_at": at(60)}
    return Firing(schedule=Schedule(**after), expected=schedule.version, jobs=jobs)


async def due(store: PostgresStore) -> dict[str, Schedule]:
    return {schedule.name: schedule for schedule in (await store.due_schedules(T0, 1000)).schedules}


async def kept(store: PostgresStore, name: str) -> Schedule:
    return (await store.schedules(ScheduleFilter(name=name), PageRequest())).items[0]


# --- by hand -------------------------------------------------------------------------------------


async def test_a_row_written_by_hand_is_due_until_a_scheduler_has_computed_it(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(BY_HAND, ("daily", "cleanup", "0 3 * * *"))
    raw = (await due(store))["daily"]
    assert (raw.version, raw.source, raw.check_at, raw.next_run_at) == (1, "sql", None, None)
    assert (raw.payload_json, raw.enabled, raw.missed, raw.overlap) == ("{}", True, "latest", "allow")
    assert not await store.fire([moved(raw)], T0)
    assert "daily" not in await due(store)


async def test_a_rule_that_is_over_is_not_due_again_until_it_is_edited_by_hand(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.put_schedules([rule("last")], T0)
    last = await kept(store, "last")
    over = Firing(schedule=rule("last", id=last.id, next_run_at=None, check_at=None), expected=1)
    assert not await store.fire([over], T0)
    assert not await due(store)
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE rota.schedules SET description = 'still over'")
        assert not await due(store)
        connection.execute("UPDATE rota.schedules SET cron = '0 5 * * *'")
    edited = (await due(store))["last"]
    assert (edited.version, edited.next_run_at, edited.cron) == (4, None, "0 5 * * *")


async def test_a_row_edited_or_disabled_by_hand_after_it_was_read_does_not_fire(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.put_schedules([rule("a"), rule("b"), rule("c")], T0)
    read = await due(store)
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE rota.schedules SET enabled = false WHERE name = 'a'")
        connection.execute("UPDATE rota.schedules SET payload = '{\"n\": 2}' WHERE name = 'b'")
    refused = await store.fire([moved(one, run(one)) for one in read.values()], T0)
    assert refused == {read["a"].id, read["b"].id}
    assert [job.schedule for job in (await store.jobs(JobFilter(), PageRequest())).items] == ["c"]
    assert (await due(store))["b"].next_run_at == T0  # its timing was not touched


async def test_enabling_by_hand_is_computed_afresh(store: PostgresStore, migrated_postgres_url: str) -> None:
    await store.put_schedules([rule("off", enabled=False, reason="broken", check_at=None)], T0)
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE rota.schedules SET enabled = true")
    on = (await due(store))["off"]
    assert (on.next_run_at, on.reason) == (None, None)


async def test_nonsense_in_one_row_hides_no_other(store: PostgresStore, migrated_postgres_url: str) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(BY_HAND, ("broken", "work", "every now and then"))
        connection.execute(
            "UPDATE rota.schedules SET every = 'NaN', jitter = 'Infinity', timezone = '', held = ARRAY[NULL, "
            "'infinity', '-infinity']::timestamptz[], missed = '?', overlap = '?', calendar_mode = '?', "
            "payload = '7', declared = '[]', start_at = 'infinity', until = '-infinity', source = '?'"
        )
        connection.execute(BY_HAND, ("sound", "work", "0 3 * * *"))
    found = await due(store)
    assert set(found) == {"broken", "sound"}
    assert len((await store.schedules(ScheduleFilter(), PageRequest())).items) == 2
    off = {name: getattr(found["broken"], name) for name in Schedule.__struct_fields__}
    off |= {"enabled": False, "reason": "nonsense", "held": ()}
    assert not await store.fire([Firing(schedule=Schedule(**off), expected=found["broken"].version)], T0)
    assert (await kept(store, "broken")).reason == "nonsense"
    assert set(await due(store)) == {"sound"}


@pytest.mark.parametrize(
    "wrong",
    ["max_attempts = 0", "priority = -2147483648", "queue = repeat('q', 201)", "task = ''", "name = ''"],
)
def test_what_would_keep_jobs_from_being_stored_is_refused_by_name(
    migrated_postgres_url: str, wrong: str
) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(BY_HAND, ("a", "work", "0 3 * * *"))
        with pytest.raises(psycopg.errors.CheckViolation, match=wrong.split()[0]):
            connection.execute(f"UPDATE rota.schedules SET {wrong}".encode())


# --- firing --------------------------------------------------------------------------------------


async def test_a_locked_row_is_refused_at_once_and_the_rest_fires(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.put_schedules([rule("held"), rule("free")], T0)
    read = await due(store)
    firings = [moved(one, run(one)) for one in read.values()]
    with psycopg.connect(migrated_postgres_url) as holder:
        holder.execute("SELECT FROM rota.schedules WHERE name = 'held' FOR UPDATE")
        refused = await asyncio.wait_for(store.fire(firings, T0), 30)
    assert refused == {read["held"].id}
    assert await store.fire(firings, T0) == {read["free"].id}


async def test_a_job_that_cannot_be_stored_stops_only_its_own_schedule(store: PostgresStore) -> None:
    await store.put_schedules([rule(f"s{n}") for n in range(5)], T0)
    read = await due(store)
    firings = [moved(one, run(one, max_attempts=0 if name == "s2" else 3)) for name, one in read.items()]
    with pytest.raises(StoreError, match="max_attempts"):
        await store.fire(firings, T0)
    assert set(await due(store)) == {"s2"}
    jobs = (await store.jobs(JobFilter(from_schedule=True), PageRequest())).items
    assert {job.schedule for job in jobs} == {"s0", "s1", "s3", "s4"}


async def test_a_fired_job_with_a_key_meets_the_holder_of_the_key(store: PostgresStore) -> None:
    await store.insert([holder := new(key="k")], T0)
    await store.put_schedules([rule("a")], T0)
    (schedule,) = (await due(store)).values()
    assert not await store.fire([moved(schedule, run(schedule, key="k"))], T0)
    assert [job.id for job in (await store.jobs(JobFilter(key="k"), PageRequest())).items] == [holder.id]


async def test_a_fire_wakes_the_workers_of_other_processes(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.put_schedules([rule("a")], T0)
    (schedule,) = (await due(store)).values()
    async with await psycopg.AsyncConnection.connect(migrated_postgres_url, autocommit=True) as listener:
        await listener.execute("LISTEN rota_wake")
        await store.fire([moved(schedule, run(schedule, queue="mail"))], T0)
        heard = [notice.payload async for notice in listener.notifies(timeout=30, stop_after=1)]
    assert heard == [hint_of("mail")]


async def test_programs_that_declare_the_same_schedules_at_once_agree(store: PostgresStore) -> None:
    others = [store.for_another_loop() for _ in range(3)]
    names = [f"s{n:03}" for n in range(100)]

    async def declare(one: PostgresStore, backwards: bool) -> list[int | None]:
        await one.open()
        given = [rule(name) for name in (reversed(names) if backwards else names)]
        told = list(await one.put_schedules(given, T0))
        await one.close()
        return told[::-1] if backwards else told

    told = await asyncio.gather(*(declare(one, n % 2 == 1) for n, one in enumerate(others)))
    assert all(sorted(answers, key=str) == [1, None, None] for answers in zip(*told, strict=True))
