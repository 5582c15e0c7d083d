"""Stored schedules: compare and swap by version, names taken once, pages, and which ones to look at now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ...model import Firing, PageRequest, Schedule, ScheduleFilter
from ...store.protocol import Store
from .factories import T0, at, new_id
from .rules import keeps

ALL = ScheduleFilter()


def rule(name: str = "nightly", **fields: Any) -> Schedule:
    """A schedule that is not stored yet, due at T0."""
    defaults: dict[str, Any] = {"id": new_id(), "name": name, "task": "work", "cron": "0 3 * * *"}
    timed: dict[str, Any] = {"next_run_at": T0, "check_at": T0, "created_at": at(-60), "updated_at": at(-60)}
    return Schedule(**(defaults | timed | fields))


def changed(schedule: Schedule, **fields: Any) -> Schedule:
    return msgspec.structs.replace(schedule, **fields)


async def stored(store: Store, *schedules: Schedule, now: datetime = T0) -> list[Schedule]:
    """The schedules as the store holds them, all of which it must take."""
    versions = await store.put_schedules(schedules, now)
    assert None not in versions, versions
    return [await kept(store, schedule.id) for schedule in schedules]


async def kept(store: Store, schedule: str) -> Schedule:
    """The schedule, which must be there."""
    page = await store.schedules(ScheduleFilter(ids=(schedule,)), PageRequest())
    assert len(page.items) == 1, f"schedule {schedule} is not in the store"
    return page.items[0]


async def listed(store: Store, where: ScheduleFilter = ALL, limit: int = 50) -> list[list[str]]:
    """Names, page by page."""
    found: list[list[str]] = []
    cursor: str | None = None
    while True:
        page = await store.schedules(where, PageRequest(limit=limit, cursor=cursor))
        found.append(names(page.items))
        cursor = page.next
        if cursor is None:
            return found
        assert len(found) < 100, "the pages do not end"


async def due(store: Store, now: datetime = T0, limit: int = 50) -> list[str]:
    return names((await store.due_schedules(now, limit)).schedules)


def names(schedules: Sequence[Schedule]) -> list[str]:
    return [schedule.name for schedule in schedules]


FULL: dict[str, Any] = {
    "tenant": "acme",
    "cron": None,
    "every": 900.5,
    "timezone": "America/New_York",
    "start_at": at(-3600.25),
    "until": at(86_400 * 365),
    "jitter": 12.5,
    "payload_json": '{"naïve":[1,"zwei",null]}',
    "queue": "mail",
    "priority": -7,
    "max_attempts": 9,
    "timeout": 2.5,
    "description": "every quarter of an hour — “about”",
    "enabled": False,
    "reason": "paused for the move",
    "missed": "all",
    "missed_cap": 7,
    "missed_window": 3600.5,
    "overlap": "queue",
    "calendar": "holidays",
    "calendar_mode": "next_working_day",
    "source": "code",
    "owner": "shop",
    "declared_json": '{"every":900.5}',
    "next_run_at": at(0.000001),
    "manual_run_at": at(0.000001),
    "check_at": at(12.75),
    "held": (at(-1800), at(-900.000001)),
    "last_fire_at": at(-900),
}


class ScheduleRules:
    # --- writing ---------------------------------------------------------------------------------

    @keeps(8)
    async def test_a_new_schedule_has_version_one(self, store: Store) -> None:
        schedule = rule()
        assert list(await store.put_schedules([schedule], at(1))) == [1]
        assert await kept(store, schedule.id) == changed(schedule, version=1, updated_at=at(1))

    @keeps(8)
    async def test_every_field_of_a_schedule_comes_back(self, store: Store) -> None:
        full = rule(**FULL)
        once = rule("once", cron=None, at=at(50.123456), next_run_at=None, check_at=None)
        for schedule in (full, once):
            await store.put_schedules([schedule], at(1))
            assert await kept(store, schedule.id) == changed(schedule, version=1, updated_at=at(1))

    @keeps(8)
    async def test_every_field_can_be_rewritten(self, store: Store) -> None:
        (schedule,) = await stored(store, rule())
        after = changed(schedule, **FULL, name="renamed", task="other")
        assert list(await store.put_schedules([after], at(2))) == [2]
        assert await kept(store, schedule.id) == changed(after, version=2, updated_at=at(2))

    @keeps(8)
    async def test_a_schedule_written_with_an_old_version_is_refused(self, store: Store) -> None:
        (first,) = await stored(store, rule())
        await stored(store, changed(first, description="newer"))
        assert list(await store.put_schedules([changed(first, description="late")], at(9))) == [None]
        after = await kept(store, first.id)
        assert (after.description, after.version, after.updated_at) == ("newer", 2, T0)

    @keeps(8)
    async def test_a_schedule_that_should_be_new_but_exists_is_refused(self, store: Store) -> None:
        schedule = rule()
        await stored(store, schedule)
        assert list(await store.put_schedules([changed(schedule, name="other")], at(9))) == [None]
        assert (await kept(store, schedule.id)).name == "nightly"

    @keeps(8)
    async def test_a_schedule_that_should_exist_but_is_gone_is_refused(self, store: Store) -> None:
        assert list(await store.put_schedules([rule(version=3)], T0)) == [None]
        assert await listed(store) == [[]]

    @keeps(8)
    async def test_a_name_is_taken_once_per_tenant(self, store: Store) -> None:
        await stored(store, rule("a"), rule("a", tenant="acme"))
        assert list(await store.put_schedules([rule("a")], T0)) == [None]
        assert await listed(store) == [["a", "a"]]

    @keeps(8)
    async def test_renaming_to_a_taken_name_is_refused(self, store: Store) -> None:
        _, second = await stored(store, rule("a"), rule("b"))
        assert list(await store.put_schedules([changed(second, name="a")], T0)) == [None]
        assert await kept(store, second.id) == second
        assert list(await store.put_schedules([changed(second, name="c")], T0)) == [2]

    @keeps(8)
    async def test_a_refused_schedule_harms_no_other_of_its_batch(self, store: Store) -> None:
        await stored(store, rule("taken"))
        batch = [rule("a"), rule("taken"), rule("old", version=4), rule("b"), rule("a")]
        assert list(await store.put_schedules(batch, T0)) == [1, None, None, 1, None]
        assert await listed(store) == [["a", "b", "taken"]]

    @keeps(8)
    async def test_nothing_to_write_is_no_error(self, store: Store) -> None:
        assert list(await store.put_schedules([], T0)) == []
        assert list(await store.delete_schedules([])) == []

    @keeps(8)
    async def test_of_many_writers_of_one_schedule_one_wins(self, store: Store) -> None:
        (schedule,) = await stored(store, rule())
        writes = [store.put_schedules([changed(schedule, description=str(n))], T0) for n in range(12)]
        versions = [version for (version,) in await asyncio.gather(*writes)]
        assert versions.count(2) == 1
        winner = versions.index(2)
        assert set(versions) == {2, None}
        assert (await kept(store, schedule.id)).description == str(winner)

    @keeps(8)
    async def test_of_many_who_want_one_name_one_gets_it(self, store: Store) -> None:
        versions = await asyncio.gather(*[store.put_schedules([rule("a")], T0) for _ in range(12)])
        assert sorted((version for (version,) in versions), key=str) == [1, *[None] * 11]

    # --- forgetting ------------------------------------------------------------------------------

    @keeps(8)
    async def test_dropped_schedules_are_gone_and_their_names_free(self, store: Store) -> None:
        first, second = await stored(store, rule("a"), rule("b"))
        assert list(await store.delete_schedules([first.id, rule().id])) == [first.id]
        assert list(await store.delete_schedules([first.id])) == []
        assert await listed(store) == [["b"]]
        assert await due(store) == ["b"]
        await stored(store, rule("a"))
        assert set(await store.delete_schedules([second.id])) == {second.id}

    # --- reading ---------------------------------------------------------------------------------

    @keeps(8)
    async def test_schedules_are_listed_by_tenant_and_name(self, store: Store) -> None:
        for tenant, name in (("b", "x"), ("a", "z"), ("a", "y/2"), ("B", "w"), ("a", "Y")):
            await stored(store, rule(name, tenant=tenant))
        assert await listed(store) == [["w", "Y", "y/2", "z", "x"]]

    @keeps(8)
    async def test_pages_go_through_all_schedules_once(self, store: Store) -> None:
        made = [("t1", f"{n:02}") for n in range(7)] + [("t2", f'"{n:02}",') for n in range(6)]
        await stored(store, *[rule(name, tenant=tenant) for tenant, name in reversed(made)])
        found = await listed(store, limit=5)
        assert [len(page) for page in found] == [5, 5, 3]
        assert [name for page in found for name in page] == [name for _, name in made]
        assert [len(page) for page in await listed(store, ScheduleFilter(tenant="t2"), limit=3)] == [3, 3]

    @keeps(8)
    async def test_each_schedule_filter_finds_its_own(self, store: Store) -> None:
        await stored(store, rule("plain"))
        marks: dict[str, Any] = {"tenant": "x", "task": "t", "enabled": False, "source": "code", "owner": "o"}
        for field, value in marks.items():
            await stored(store, rule(field, **{field: value}))
            assert await listed(store, ScheduleFilter(**{field: value})) == [[field]], field
        assert await listed(store, ScheduleFilter(name="task")) == [["task"]]
        assert await listed(store, ScheduleFilter(name="missing")) == [[]]
        enabled = await listed(store, ScheduleFilter(enabled=True))
        assert enabled == [["owner", "plain", "source", "task", "tenant"]]

    @keeps(8)
    async def test_every_given_schedule_filter_must_hold(self, store: Store) -> None:
        await stored(store, rule("a", task="t"), rule("b", task="t", enabled=False), rule("a", tenant="x"))
        assert await listed(store, ScheduleFilter(task="t", enabled=False)) == [["b"]]
        (only,) = (await store.schedules(ScheduleFilter(name="a", tenant="x"), PageRequest(limit=1))).items
        assert only.tenant == "x"

    @keeps(8)
    async def test_schedules_are_found_by_id(self, store: Store) -> None:
        second, first, _ = await stored(store, rule("b"), rule("a"), rule("c"))
        assert await listed(store, ScheduleFilter(ids=(second.id, first.id, rule().id))) == [["a", "b"]]
        assert await listed(store, ScheduleFilter(ids=())) == [[]]

    # --- what is due -----------------------------------------------------------------------------

    @keeps(8)
    async def test_the_most_overdue_schedule_comes_first(self, store: Store) -> None:
        for name, seconds in (("b", -5), ("c", 0), ("a", -90)):
            await stored(store, rule(name, check_at=at(seconds)))
        assert await due(store) == ["a", "b", "c"]
        assert await due(store, limit=2) == ["a", "b"]

    @keeps(8)
    async def test_a_due_schedule_is_returned_in_full(self, store: Store) -> None:
        (schedule,) = await stored(store, rule(**(FULL | {"enabled": True, "check_at": T0})))
        assert list((await store.due_schedules(T0, 5)).schedules) == [schedule]

    @keeps(8)
    async def test_a_schedule_that_is_not_due_yet_reports_its_next_look(self, store: Store) -> None:
        await stored(store, rule("later", check_at=at(90)), rule("soon", check_at=at(60)))
        due_now = await store.due_schedules(at(59), 10)
        assert (list(due_now.schedules), due_now.next_check_at) == ([], at(60))
        assert await due(store, at(60)) == ["soon"]
        assert await due(store, at(90)) == ["soon", "later"]

    @keeps(8)
    async def test_when_to_look_is_not_when_it_fires(self, store: Store) -> None:
        await stored(store, rule("spread", next_run_at=T0, check_at=at(30)), rule("held", next_run_at=at(99)))
        assert await due(store) == ["held"]
        assert await due(store, at(30)) == ["held", "spread"]

    @keeps(8)
    async def test_a_disabled_schedule_is_never_due(self, store: Store) -> None:
        await stored(store, rule("off", enabled=False), rule("later off", enabled=False, check_at=at(5)))
        await stored(store, rule("off, not computed", enabled=False, next_run_at=None, check_at=None))
        due_now = await store.due_schedules(T0, 10)
        assert (list(due_now.schedules), due_now.next_check_at) == ([], None)

    @keeps(8)
    async def test_an_empty_store_has_nothing_due(self, store: Store) -> None:
        due_now = await store.due_schedules(T0, 10)
        assert (list(due_now.schedules), due_now.next_check_at) == ([], None)

    @keeps(8)
    async def test_a_schedule_whose_times_were_never_computed_is_due(self, store: Store) -> None:
        """As is one written by hand: it has no times, has not fired, and was not written again."""
        (raw,) = await stored(store, rule("raw", next_run_at=None, check_at=None))
        assert await due(store) == ["raw"]
        following = changed(raw, next_run_at=at(60), check_at=at(60))
        assert await store.fire([Firing(schedule=following, expected=1)], T0) == frozenset()
        assert await due(store) == []
        assert await due(store, at(60)) == ["raw"]

    @keeps(8)
    async def test_schedules_never_computed_come_before_those_that_are_due(self, store: Store) -> None:
        await stored(store, rule("overdue", check_at=at(-900)), rule("raw", next_run_at=None, check_at=None))
        assert await due(store, limit=1) == ["raw"]

    @keeps(8)
    async def test_a_rule_that_is_over_is_not_looked_at_again(self, store: Store) -> None:
        never, last = await stored(store, rule("never", next_run_at=None, check_at=None), rule("last"))
        over = changed(last, next_run_at=None, check_at=None, last_fire_at=T0)
        firings = [Firing(schedule=never, expected=1), Firing(schedule=over, expected=1)]
        assert await store.fire(firings, T0) == frozenset()
        due_now = await store.due_schedules(at(86_400), 10)
        assert (list(due_now.schedules), due_now.next_check_at) == ([], None)
        await stored(store, changed(await kept(store, last.id), description="was useful once"))
        assert await due(store, at(86_400)) == []

    @keeps(8)
    async def test_what_is_left_by_a_small_limit_comes_next(self, store: Store) -> None:
        await stored(store, *[rule(f"s{n}", check_at=at(n - 7)) for n in range(7)])
        seen: list[str] = []
        while batch := (await store.due_schedules(T0, 3)).schedules:
            seen += names(batch)
            after = [changed(schedule, check_at=at(60)) for schedule in batch]
            await store.fire([Firing(schedule=schedule, expected=schedule.version) for schedule in after], T0)
        assert seen == [f"s{n}" for n in range(7)]
