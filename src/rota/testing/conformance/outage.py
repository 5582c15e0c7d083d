"""Outages: an unreachable store always raises the same error, and works again once available."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ...core.jobs import lifecycle
from ...errors import StoreUnavailable
from ...model import JobFilter, PageRequest, State
from ...store.calls import settle
from ...store.protocol import Store
from .audit import line
from .durability import recovered
from .factories import T0, add, at, change, found, lease, new, pulse, running, want
from .host import StoreHost
from .rules import keeps
from .schedules import rule

ANSWER_S = 60.0  # a call may wait for the store to return, but never for ever


class OutageRules:
    @keeps(18)
    async def test_every_verb_reports_an_outage_as_store_unavailable(
        self, store: Store, host: StoreHost
    ) -> None:
        job = await running(store)
        outage = host.outage()
        if outage is None:
            return  # nothing can come between a process and a store inside it
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "insert": lambda: store.insert([new()], T0),
            "turn": lambda: store.turn([change(job, State.SUCCEEDED)], want(), at(1)),
            "heartbeat": lambda: store.heartbeat(pulse([lease(job)]), at(1)),
            "reclaim": lambda: store.reclaim("w2", 30, 10, at(100)),
            "put_schedules": lambda: store.put_schedules([rule()], T0),
            "due_schedules": lambda: store.due_schedules(T0, 5),
            "edit": lambda: store.edit((job.id,), lifecycle.cancel("x", at(1)), at(1)),
            "jobs": lambda: store.jobs(JobFilter(), PageRequest()),
            "append_audit": lambda: store.append_audit([line()]),
            "put_document": lambda: store.put_document("kind", "key", "{}", None, T0),
        }
        with outage:
            for name, call in calls.items():
                with pytest.raises(StoreUnavailable):
                    await asyncio.wait_for(call(), ANSWER_S)
                    pytest.fail(f"{name} answered during the outage")
        await recovered(store)
        assert (await found(store, job.id)).state is State.RUNNING
        assert not await settle(store, [change(job, State.SUCCEEDED)], at(2))

    @keeps(18)
    async def test_a_store_works_again_after_an_outage(self, store: Store, host: StoreHost) -> None:
        outage = host.outage()
        if outage is None:
            return
        before, after = new(), new()
        await add(store, before)
        with outage, pytest.raises(StoreUnavailable):
            await asyncio.wait_for(store.jobs(JobFilter(), PageRequest()), ANSWER_S)
        await recovered(store)
        await add(store, after)
        for job in (before, after):
            assert (await found(store, job.id)).state is State.QUEUED
