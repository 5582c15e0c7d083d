"""The audit log: added to, read in order, sealed, forgotten only by age."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ...core.audit_chain import broken_content, broken_link, sealed
from ...model import (
    AuditChain,
    AuditChainEnds,
    AuditEntry,
    AuditFilter,
    AuditSeal,
    AuditSeals,
    PageRequest,
    RetentionCutoffs,
)
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
    async def test_the_audit_log_forgets_only_what_is_older_in_whole_batches(self, store: Store) -> None:
        for batch in ((0, 1), (2, 3), (4, 5)):
            await store.append_audit([line(f"test.{n}", at=at(n)) for n in batch])
            assert await seal(store, at(6))
        await store.append_audit([line("test.unsealed")])
        assert (await store.maintain(RetentionCutoffs(audit=at(5)), 3, at(9))).audit_entries == 2
        assert await actions(store) == ["test.2", "test.3", "test.4", "test.5", "test.unsealed"]
        assert (await store.maintain(RetentionCutoffs(audit=at(5)), 100, at(9))).audit_entries == 2
        assert (await store.maintain(RetentionCutoffs(audit=at(5)), 100, at(9))).audit_entries == 0
        assert await actions(store) == ["test.4", "test.5", "test.unsealed"]
        kept = await store.survey(AuditSeals(0, 10))
        assert [(one.number, one.pruned_at is not None) for one in kept] == [(2, True), (3, False)]
        assert broken_link(kept[0], None) is None and broken_link(kept[1], kept[0]) is None

    @keeps(12)
    async def test_an_entry_from_the_future_is_forgotten_by_the_time_of_its_seal(self, store: Store) -> None:
        await store.append_audit([line("old", at=at(10_000_000)), line("new")])
        await seal(store, at(0))
        assert (await store.maintain(RetentionCutoffs(audit=at(5)), 1, at(9))).audit_entries == 2

    @keeps(13)
    async def test_lines_come_after_the_forgotten_ones(self, store: Store) -> None:
        await store.append_audit([line("old")])
        await seal(store, T0)
        await store.append_audit([line("kept", at=at(5))])
        assert (await store.maintain(RetentionCutoffs(audit=at(1)), 10, at(1))).audit_entries == 1
        await store.append_audit([line("new")])
        assert await actions(store) == ["kept", "new"]

    @keeps(13)
    async def test_seals_cover_every_entry_once_and_are_read_as_they_were_stored(self, store: Store) -> None:
        assert await store.survey(AuditChainEnds()) == AuditChain()
        await store.append_audit([line("a", message="✓", after_json='{"b": 1,  "a":2}'), line("b", at=at(2))])
        ends = await store.survey(AuditChainEnds())
        assert (ends.head, ends.unsealed, ends.oldest_unsealed_at) == (None, 2, T0)
        first = await seal(store, at(3.000007))
        await store.append_audit([line("c")])
        second = await seal(store, at(4))
        assert first is not None and second is not None and second.previous == first.digest
        assert list(await store.survey(AuditSeals(0, 10))) == [first, second]
        assert list(await store.survey(AuditSeals(1, 10))) == [second]
        assert await store.survey(AuditChainEnds()) == AuditChain(base=first, head=second)
        for one, names in ((first, ["a", "b"]), (second, ["c"])):
            entries = await lines(store, AuditFilter(seal=one.number))
            assert [entry.action for entry in entries] == names
            assert broken_content(one, entries) is None
        assert await lines(store, AuditFilter(seal=0)) == await lines(store, AuditFilter(seal=3)) == []

    @keeps(13)
    async def test_only_the_next_seal_over_unsealed_entries_is_stored(self, store: Store) -> None:
        await store.append_audit([line("a"), line("b")])
        entries = await lines(store)
        first = sealed(None, entries, T0)
        skipping = msgspec.structs.replace(first, number=2)
        assert not await store.seal_audit(skipping, [entry.id for entry in entries])
        assert await store.seal_audit(first, [entry.id for entry in entries])
        again = sealed(first, entries[:1], T0)
        assert not await store.seal_audit(again, [entries[0].id])  # it has a seal
        assert not await store.seal_audit(first, [entry.id for entry in entries])
        assert list(await store.survey(AuditSeals(0, 10))) == [first]

    @keeps(13)
    async def test_of_many_that_seal_at_once_one_succeeds(self, store: Store) -> None:
        await store.append_audit([line(f"test.{n}") for n in range(5)])
        made = await asyncio.gather(*[seal(store, at(n)) for n in range(6)])
        assert len([one for one in made if one is not None]) <= 2
        stored = await store.survey(AuditSeals(0, 10))
        assert sum(one.entries for one in stored) == 5
        assert [one.number for one in stored] == list(range(1, len(stored) + 1))


async def seal(store: Store, now: datetime) -> AuditSeal | None:
    """Seal what is not sealed; None if there is nothing, or another did."""
    entries = await lines(store, AuditFilter(seal=0))
    if not entries:
        return None
    made = sealed((await store.survey(AuditChainEnds())).head, entries, now)
    return made if await store.seal_audit(made, [entry.id for entry in entries]) else None
