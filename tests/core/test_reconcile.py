"""Schedules that code declares: what a starting program may change, and what stays an operator's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.schedules.reconcile import declaration, reconcile, retire
from rota.model import Schedule

T0 = datetime(2026, 3, 2, tzinfo=UTC)


def declared(**given: Any) -> Schedule:
    """As the code builds it, not stored yet."""
    rule = {} if {"cron", "every", "at"} & given.keys() else {"cron": "0 3 * * *"}
    values = {"id": "new", "name": "nightly", "task": "nightly", "source": "code", "owner": "shop", **rule}
    return Schedule(created_at=T0, updated_at=T0, **(values | given))


def stored(of: Schedule, **edits: Any) -> Schedule:
    """As it lies in the store since that declaration, and as an operator has edited it since."""
    kept = {
        "id": "old",
        "version": 4,
        "declared_json": declaration(of),
        "next_run_at": T0 + timedelta(hours=3),
    }
    return msgspec.structs.replace(of, **(kept | edits))


def test_a_new_declaration_is_inserted_and_started() -> None:
    found = reconcile(None, declared())
    assert found.write is not None
    assert (found.write.source, found.write.owner, found.restart) == ("code", "shop", True)
    assert found.write.declared_json == declaration(declared())


def test_an_unchanged_declaration_writes_nothing() -> None:
    found = reconcile(stored(declared()), declared())
    assert (found.write, found.kept) == (None, ())


def test_new_code_updates_its_schedule_in_place() -> None:
    found = reconcile(stored(declared()), declared(cron="0 4 * * *", description="later"))
    assert found.write is not None
    assert (found.write.id, found.write.version) == ("old", 4)
    assert (found.write.cron, found.write.description, found.restart) == ("0 4 * * *", "later", True)


def test_a_change_that_is_not_of_timing_keeps_the_next_fire() -> None:
    found = reconcile(stored(declared()), declared(payload_json='{"a":1}', priority=5))
    assert found.write is not None
    assert (found.write.payload_json, found.write.priority, found.restart) == ('{"a":1}', 5, False)
    assert found.write.next_run_at == T0 + timedelta(hours=3)


def test_an_operators_edit_is_kept_over_new_code_and_is_named() -> None:
    found = reconcile(stored(declared(), cron="0 5 * * *"), declared(cron="0 4 * * *", description="new"))
    assert found.write is not None
    assert (found.write.cron, found.write.description, found.kept) == ("0 5 * * *", "new", ("cron",))


def test_an_operators_edit_is_named_at_every_start() -> None:
    found = reconcile(stored(declared(), cron="0 5 * * *"), declared())
    assert (found.write, found.kept) == (None, ("cron",))


def test_an_edit_that_the_code_has_caught_up_with_is_no_longer_an_edit() -> None:
    found = reconcile(stored(declared(), cron="0 5 * * *"), declared(cron="0 5 * * *"))
    assert (found.kept, found.restart) == ((), False)
    assert found.write is not None
    assert found.write.declared_json == declaration(declared(cron="0 5 * * *"))


def test_a_rule_of_another_kind_replaces_the_old_one_whole() -> None:
    found = reconcile(stored(declared()), declared(every=60.0, cron=None))
    assert found.write is not None
    assert (found.write.cron, found.write.every, found.restart) == (None, 60.0, True)


def test_a_rule_of_another_kind_by_an_operator_is_kept_whole() -> None:
    """Half of each would be a schedule with two rules."""
    edited = stored(declared(), cron=None, every=60.0)
    found = reconcile(edited, declared(cron="0 4 * * *"))
    assert found.write is not None
    assert (found.write.cron, found.write.every) == (None, 60.0)


def test_an_operators_new_time_is_kept_when_the_code_changes_to_another_kind_of_rule() -> None:
    edited = stored(declared(), cron="0 5 * * *")
    found = reconcile(edited, declared(every=60.0, cron=None))
    assert found.write is not None
    assert (found.write.cron, found.write.every) == ("0 5 * * *", None)
    assert {"cron", "every"} <= set(found.kept)


def test_a_pause_is_never_undone_and_is_named() -> None:
    paused = stored(declared(), enabled=False, reason="holiday", check_at=None)
    found = reconcile(paused, declared(cron="0 4 * * *"))
    assert found.write is not None
    assert (found.write.enabled, found.write.reason, found.write.cron) == (False, "holiday", "0 4 * * *")
    assert found.kept == ("enabled",)
    assert reconcile(paused, declared()).kept == ("enabled",)


def test_a_schedule_no_longer_declared_is_retired_with_the_reason() -> None:
    off = retire(stored(declared(), held=(T0,)), "shop")
    assert off is not None
    assert (off.enabled, off.check_at, off.held) == (False, None, ())
    assert off.reason == "retired: shop no longer declares it"


def test_a_pause_is_not_turned_into_a_retirement() -> None:
    assert retire(stored(declared(), enabled=False, reason="holiday"), "shop") is None


def test_a_retired_schedule_is_revived_when_declared_again() -> None:
    off = retire(stored(declared()), "shop")
    assert off is not None
    found = reconcile(off, declared())
    assert found.write is not None
    assert (found.write.enabled, found.write.reason, found.restart, found.kept) == (True, None, True, ())


def test_a_schedule_made_by_hand_is_left_alone() -> None:
    found = reconcile(stored(declared(), source="user"), declared(cron="0 4 * * *"))
    assert found.write is None
    assert "created by hand" in found.kept[0]


def test_a_schedule_that_moved_to_another_program_changes_its_owner_only() -> None:
    found = reconcile(stored(declared()), declared(owner="billing"))
    assert found.write is not None
    assert (found.write.owner, found.restart) == ("billing", False)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3"])
def test_a_lost_memory_of_the_declaration_overwrites_nothing_that_differs(text: str | None) -> None:
    found = reconcile(stored(declared(), cron="0 5 * * *", declared_json=text), declared())
    assert found.write is not None
    assert (found.write.cron, found.kept) == ("0 5 * * *", ("cron",))


FIELD = st.sampled_from(["0 3 * * *", "0 4 * * *", "0 5 * * *"])


@examples()
@given(first=FIELD, edit=FIELD, second=FIELD, words=st.tuples(*[st.sampled_from("abc")] * 3))
def test_reconciling_twice_changes_nothing_more(
    first: str, edit: str, second: str, words: tuple[str, str, str]
) -> None:
    there = stored(declared(cron=first, description=words[0]), cron=edit, description=words[1])
    code = declared(cron=second, description=words[2])
    once = reconcile(there, code)
    again = reconcile(once.write or there, code)
    assert (again.write, again.kept) == (None, once.kept)
    if edit != first:
        assert (once.write or there).cron == edit
    else:
        assert (once.write or there).cron == second
