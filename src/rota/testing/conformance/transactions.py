"""Joining the caller's transaction: the job exists if and only if that transaction commits."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from ...errors import ConfigError
from ...model import (
    AuditEntry,
    AuditFilter,
    InsertResult,
    Limit,
    LimitRule,
    LimitRules,
    NewJob,
    PageRequest,
    RunCounts,
    Schedule,
    ScheduleFilter,
    State,
    TenantRule,
    TenantRules,
    TenantsInUse,
)
from ...store.calls import settle
from ...store.protocol import Store
from .factories import T0, at, change, found, new, new_id, read, running
from .host import StoreHost
from .rules import keeps


async def insert_with(store: Store, connection: Any, *jobs: NewJob) -> Sequence[InsertResult]:
    answer = store.insert_with(connection, jobs, T0)
    return await answer if inspect.isawaitable(answer) else answer


class TransactionRules:
    @keeps(20)
    async def test_a_job_is_stored_when_the_callers_transaction_commits(
        self, store: Store, host: StoreHost
    ) -> None:
        transaction = host.transaction(commit=True)
        assert (transaction is not None) == store.capabilities.transactional
        if transaction is None:
            return
        jobs = [new(), new(key="k")]
        async with transaction as connection:
            inserted = await insert_with(store, connection, *jobs)
            assert [one.outcome for one in inserted] == ["created", "created"]
            assert await read(store, jobs[0].id) is None, "it is visible before the commit"
        for job in jobs:
            assert (await found(store, job.id)).state is State.QUEUED

    @keeps(20)
    async def test_no_job_is_stored_when_the_callers_transaction_rolls_back(
        self, store: Store, host: StoreHost
    ) -> None:
        transaction = host.transaction(commit=False)
        if transaction is None:
            return
        job = new(key="k")
        async with transaction as connection:
            await insert_with(store, connection, job)
        assert await read(store, job.id) is None
        (again,) = await store.insert([new(key="k")], T0)
        assert again.outcome == "created", "the key is still taken by a job that was rolled back"

    @keeps(20)
    async def test_a_job_that_has_ended_is_not_stored_again_when_the_caller_retries(
        self, store: Store, host: StoreHost
    ) -> None:
        transaction = host.transaction(commit=True)
        if transaction is None:
            return
        job = await running(store)
        await settle(store, [change(job, State.SUCCEEDED)], at(1))
        again = new(id=job.id)
        async with transaction as connection:
            answer = store.insert_with(connection, [again], at(2), retrying=True)
            (one,) = await answer if inspect.isawaitable(answer) else answer
        assert (one.id, one.outcome, one.state) == (job.id, "existing", State.SUCCEEDED)
        assert (await found(store, job.id)).state is State.SUCCEEDED


class ScheduleTransactionRules:
    @keeps(20)
    async def test_a_schedule_is_changed_when_the_callers_transaction_commits(
        self, store: Store, host: StoreHost
    ) -> None:
        transaction = host.transaction(commit=True)
        if transaction is None:
            return
        kept = schedule("kept", payload_json='{"b":1,"a":2}', held=(at(1), at(2)), check_at=None)
        gone = schedule("gone", tenant="acme")
        await store.put_schedules([kept, gone], T0)
        run = await running(store, tenant="acme", schedule="gone")
        await settle(store, [change(run, State.SUCCEEDED)], T0)
        entry = AuditEntry(action="schedule.update", at=T0, actor="ann", object="schedule:default/kept")
        async with transaction as connection:
            within = store.within(connection)
            (before,) = (await within.schedules(named(kept), PageRequest(limit=1))).items
            assert before == await stored(store, kept)
            after = msgspec.structs.replace(before, description="changed")
            assert await within.put_schedules([after], at(1)) == [2]
            assert await within.put_schedules([after], at(1)) == [None], "its version has moved"
            assert await within.put_schedules([schedule("new"), schedule("kept")], at(1)) == [1, None]
            assert await within.delete_schedules([gone.id]) == [gone.id]
            await within.append_audit([entry, entry])
            assert (await stored(store, kept)).version == 1, "it is visible before the commit"
        changed = await stored(store, kept)
        assert (changed.description, changed.version, changed.updated_at) == ("changed", 2, at(1))
        found = (await store.schedules(ScheduleFilter(), PageRequest(limit=9))).items
        assert [one.name for one in found] == ["kept", "new"]
        lines = (await store.audit(AuditFilter(object="schedule:default/kept"), PageRequest(limit=9))).items
        assert len({line.id for line in lines}) == 2
        assert not await store.survey(RunCounts([("acme", "gone")], T0.date())), "of a schedule that is gone"

    @keeps(20)
    async def test_no_schedule_is_changed_when_the_callers_transaction_rolls_back(
        self, store: Store, host: StoreHost
    ) -> None:
        transaction = host.transaction(commit=False)
        if transaction is None:
            return
        await store.put_document("calendar", "holidays", '{"name":"holidays"}', 0, T0)
        async with transaction as connection:
            within = store.within(connection)
            assert await within.put_schedules([schedule("new")], T0) == [1]
            (document,) = await within.documents("calendar", "holidays")
            assert (document.body, document.version) == ('{"name":"holidays"}', 1)
            assert not await within.documents("calendar", "others")
        assert not (await store.schedules(ScheduleFilter(), PageRequest(limit=9))).items

    @keeps(20)
    async def test_rules_and_what_a_tenant_has_are_read_in_the_callers_transaction(
        self, store: Store, host: StoreHost
    ) -> None:
        transaction = host.transaction(commit=True)
        if transaction is None:
            return
        limit = Limit(rate="5/s", burst=7)
        rules = [LimitRule(name=f"key:{name}", chosen=limit) for name in "ab"]
        await store.put_rules([*rules, TenantRule(name="acme", waiting=3)], T0)
        async with transaction as connection:
            await insert_with(store, connection, new(tenant="acme"), new(tenant="acme"), new(tenant="other"))
            within = store.within(connection)
            (found,) = await within.survey(LimitRules(("key:b", "key:c")))
            assert (found.name, found.chosen, found.version) == ("key:b", limit, 1)
            assert not await within.survey(LimitRules(()))
            (rule,) = await within.survey(TenantRules(("acme", "other")))
            assert (rule.name, rule.waiting) == ("acme", 3)
            (use,) = await within.survey(TenantsInUse(T0, ("acme",), 9))
            assert use.waiting == 2, "with the jobs of this transaction"


def schedule(name: str, **fields: Any) -> Schedule:
    defaults: dict[str, Any] = {
        "id": new_id(), "task": "work", "every": 60.0, "next_run_at": at(60), "check_at": at(60),
        "created_at": T0, "updated_at": T0,
    }  # fmt: skip
    return Schedule(name=name, **(defaults | fields))


def named(one: Schedule) -> ScheduleFilter:
    return ScheduleFilter(name=one.name, tenant=one.tenant)


async def stored(store: Store, one: Schedule) -> Schedule:
    (found,) = (await store.schedules(named(one), PageRequest(limit=1))).items
    return found


class ConnectionRules:
    @keeps(20)
    async def test_a_connection_of_an_unknown_kind_is_refused_by_name(self, store: Store) -> None:
        with pytest.raises(ConfigError, match="object"):
            await insert_with(store, object(), new())
        with pytest.raises(ConfigError, match="object"):
            store.within(object())
