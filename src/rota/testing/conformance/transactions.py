"""Joining the caller's transaction: the job exists if and only if that transaction commits."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pytest

from ...errors import ConfigError
from ...model import InsertResult, NewJob, State
from ...store.calls import settle
from ...store.protocol import Store
from .factories import T0, at, change, found, new, read, running
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

    @keeps(1, 20)
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


class ConnectionRules:
    @keeps(20)
    async def test_a_connection_of_an_unknown_kind_is_refused_by_name(self, store: Store) -> None:
        with pytest.raises(ConfigError, match="object"):
            await insert_with(store, object(), new())
