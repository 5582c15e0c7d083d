"""The audit log: added to, read in order, forgotten only by age."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from ...model import AuditEntry, AuditFilter, PageRequest, RetentionCutoffs
from ...store.protocol import Store
from .factories import T0, at
from .rules import keeps

ALL = AuditFilter()


def line(action: str = "job.cancel", **fields: Any) -> AuditEntry:
    defaults: dict[str, Any] = {"action": action, "at": T0}
    return AuditEntry(**(defaults | fields))


async def lines(store: Store, where: AuditFilter = ALL) -> Sequence[AuditEntry]:
    """Those that the filter lets through, oldest first."""
    return (await store.audit(where, PageRequest(limit=1000, newest_first=False))).items


async def actions(store: Store, where: AuditFilter = ALL) -> list[str]:
    return [entry.action for entry in await lines(store, where)]


class AuditRules:
    @keeps(13)
    async def test_a_line_of_the_audit_log_is_read_as_it_was_written(self, store: Store) -> None:
        short = line()
        full = line(
            "queue.pause", at=at(1.000007), actor="ann", role="operator", via="http", tenant="x",
            object="queue:mail", before_json='{"paused":false}', after_json='{"paused":true}',
            result="denied", message="not <you>\x1b[2J 'or' \"her\" ✓", request_id="r1", address="::1",
        )  # fmt: skip
        await store.append_audit([short, full])
        first, second = await lines(store)
        assert first.id < second.id
        assert msgspec.structs.replace(first, id="") == short
        assert msgspec.structs.replace(second, id="") == full
        assert (second.before, second.after) == ({"paused": False}, {"paused": True})

    @keeps(13)
    async def test_adding_nothing_to_the_audit_log_adds_nothing(self, store: Store) -> None:
        await store.append_audit([])
        assert list(await lines(store)) == []

    @keeps(13)
    async def test_ids_of_the_audit_log_grow_in_the_order_of_adding(self, store: Store) -> None:
        # within one instant, and even when the clock goes back
        for round_, now in enumerate((at(50), at(50), at(7), at(7), at(60))):
            await store.append_audit([line(f"test.{round_}.{n}", at=now) for n in range(3)])
        assert await actions(store) == [f"test.{round_}.{n}" for round_ in range(5) for n in range(3)]
        ids = [entry.id for entry in await lines(store)]
        assert ids == sorted(set(ids))

    @keeps(13)
    async def test_lines_added_at_once_are_each_there_in_their_order(self, store: Store) -> None:
        calls = [[line(f"{n}.begin"), line(f"{n}.end")] for n in range(12)]
        await asyncio.gather(*[store.append_audit(call) for call in calls])
        entries = await lines(store)
        assert len({entry.id for entry in entries}) == 24
        for n in range(12):
            mine = [entry.action for entry in entries if entry.action.startswith(f"{n}.")]
            assert mine == [f"{n}.begin", f"{n}.end"]

    @keeps(13)
    async def test_pages_go_through_the_audit_log_in_both_directions(self, store: Store) -> None:
        await store.append_audit([line(f"test.{n}") for n in range(7)])
        for newest_first in (True, False):
            found: list[str] = []
            page = await store.audit(ALL, PageRequest(limit=3, newest_first=newest_first))
            found += [entry.action for entry in page.items]
            while page.next is not None:
                ask = PageRequest(limit=3, cursor=page.next, newest_first=newest_first)
                page = await store.audit(ALL, ask)
                found += [entry.action for entry in page.items]
            assert found == sorted([f"test.{n}" for n in range(7)], reverse=newest_first)

    @keeps(13)
    async def test_each_filter_of_the_audit_log_finds_its_lines(self, store: Store) -> None:
        for field in ("actor", "object", "tenant", "result"):
            wanted: dict[str, Any] = {field: "mine"}
            shouted: dict[str, Any] = {field: "MINE"}
            await store.append_audit([line("other"), line("hit", **wanted), line("hit.too", **wanted)])
            assert await actions(store, AuditFilter(**wanted)) == ["hit", "hit.too"]
            assert await actions(store, AuditFilter(**shouted)) == []
            assert await actions(store, AuditFilter(action="hit", **wanted)) == ["hit"]

    @keeps(13)
    async def test_an_action_is_found_whole_or_by_its_beginning(self, store: Store) -> None:
        await store.append_audit(
            [line(name) for name in ("job.cancel", "job", "jobs.x", "job.", "jobXretry")]
        )
        await store.append_audit([line(name) for name in ("job.retry", "a_b.c", "aXb.c", "JOB.x")])
        assert await actions(store, AuditFilter(action="job")) == ["job"]
        assert await actions(store, AuditFilter(action="job.cancel")) == ["job.cancel"]
        assert await actions(store, AuditFilter(action="job.")) == ["job.cancel", "job.", "job.retry"]
        assert await actions(store, AuditFilter(action="a_b.")) == ["a_b.c"]
        assert await actions(store, AuditFilter(action="%.")) == []

    @keeps(13)
    async def test_the_audit_log_is_filtered_by_time(self, store: Store) -> None:
        await store.append_audit([line(f"test.{n}", at=at(n)) for n in (5, 3, 4, 6)])
        assert await actions(store, AuditFilter(since_at=at(4))) == ["test.5", "test.4", "test.6"]
        assert await actions(store, AuditFilter(until_at=at(5))) == ["test.3", "test.4"]
        assert await actions(store, AuditFilter(since_at=at(4), until_at=at(6))) == ["test.5", "test.4"]

    @keeps(13)
    async def test_every_given_filter_of_the_audit_log_must_hold(self, store: Store) -> None:
        mine: dict[str, Any] = {"actor": "ann", "tenant": "x", "object": "job:1"}
        await store.append_audit([line("hit", **mine), line("miss", **(mine | {"tenant": "y"}))])
        await store.append_audit([line("miss", **(mine | {"object": None})), line("miss", at=at(9), **mine)])
        assert await actions(store, AuditFilter(until_at=at(5), **mine)) == ["hit"]

    @keeps(12)
    async def test_the_audit_log_forgets_only_what_is_older(self, store: Store) -> None:
        await store.append_audit([line(f"test.{n}", at=at(n)) for n in range(6)])
        assert (await store.maintain(RetentionCutoffs(audit=at(4)), 3, at(4))).audit_entries == 3
        assert await actions(store) == ["test.3", "test.4", "test.5"]
        assert (await store.maintain(RetentionCutoffs(audit=at(4)), 100, at(4))).audit_entries == 1
        assert (await store.maintain(RetentionCutoffs(audit=at(4)), 100, at(4))).audit_entries == 0
        assert await actions(store) == ["test.4", "test.5"]

    @keeps(13)
    async def test_lines_come_after_the_forgotten_ones(self, store: Store) -> None:
        await store.append_audit([line("old"), line("kept", at=at(5))])
        await store.maintain(RetentionCutoffs(audit=at(1)), 10, at(1))
        await store.append_audit([line("new")])
        assert await actions(store) == ["kept", "new"]
