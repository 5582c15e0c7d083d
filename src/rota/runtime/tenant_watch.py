"""What tenants may, as this process last read it, and how much of it they use: the quotas at enqueue.

Owns the copy of the rules and the counts, and what this process has added since they were made. Reads at most
once a second; without rules that is all there is to do. Never writes a rule.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

import msgspec

from ..core.tenants import Wanted, check_quota, governed
from ..errors import StoreError, StoreUnavailable
from ..model import Answer, Document, NewJob, Question, TenantRule, TenantRules, TenantsInUse, TenantUse
from ..store.protocol import Store
from .clock import Clock, monotonic

FRESH_S = 1.0
NONE_FRESH_S = 5.0  # while no tenant has a rule
COUNT_SHARE = 20  # counting takes one part in this many of the time, as long as that is soon enough
MOST_COUNT_S = 10.0
BYTES = "tenant_bytes"  # the kind of document that adds up the payloads of a tenant by day
WRITE_PART = 0.01  # of a quota of bytes: more than this is written at once
ATTEMPTS = 5  # while other processes write the same document


class Asked(Protocol):
    """A store, or the caller's own transaction on one."""

    async def survey(self, question: Question[Answer]) -> Answer: ...
    async def documents(self, kind: str, key: str) -> Sequence[Document]: ...


class BytesOfDay(msgspec.Struct, frozen=True):
    """The body of a document of bytes."""

    day: date
    bytes: int


class _Count:
    """What a tenant had when it was counted, and what this process has added since."""

    __slots__ = ("day", "fresh_until", "jobs", "unwritten", "use", "written_at")

    def __init__(self) -> None:
        self.fresh_until = float("-inf")
        self.written_at = float("-inf")
        self.use = TenantUse(name="")
        self.jobs = 0
        self.day: date | None = None  # of the bytes
        self.unwritten = 0  # bytes that are in no document yet


class TenantWatch:
    """One for each app; any event loop of any thread may use it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._fresh_until = float("-inf")
        self._rules: Mapping[str, TenantRule] = {}
        self._reading: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
        self._counts: dict[str, _Count] = {}
        self._is_asked = True

    def forget(self) -> None:
        """A rule was changed here: read them again before the next job."""
        self._fresh_until = float("-inf")

    @property
    def has_nothing(self) -> bool:
        """Whether no tenant has a rule, as far as is known by now: then there is nothing to check."""
        return not self._rules and monotonic() < self._fresh_until

    async def rules(self, store: Store) -> Mapping[str, TenantRule]:
        """The rules by tenant, at most a second old; five if there were none."""
        if monotonic() >= self._fresh_until:
            async with self._reading.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                if monotonic() >= self._fresh_until:
                    await self._read(store)
        return self._rules

    async def _read(self, asked: Asked) -> None:
        began = monotonic()
        try:
            found = await asked.survey(TenantRules())
        except StoreUnavailable:
            raise
        except StoreError:  # a store of another package that knows no rules
            found = ()
        self._rules = {rule.name: rule for rule in found}
        self._fresh_until = began + (FRESH_S if found else NONE_FRESH_S)

    # --- enqueueing ------------------------------------------------------------------------------

    async def admitted(self, store: Store, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
        """The jobs as they may be stored; QuotaExceeded if a tenant would have too many. Counts them."""
        rules = await self.rules(store)
        jobs, counted = self._governed(jobs, rules)
        for rule, wanted in counted:
            count = await self._checked(store, rule, wanted)
            if rule.bytes_per_day is not None:
                await self._write_bytes(store, rule, count)
        return jobs

    async def admitted_within(self, within: Asked, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
        """The same in the caller's transaction, where no connection of our own may be waited for."""
        if monotonic() >= self._fresh_until:
            await self._read(within)
        jobs, counted = self._governed(jobs, self._rules)
        for rule, wanted in counted:
            await self._checked(within, rule, wanted)
        return jobs

    def at_hand(self, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
        """The jobs as they may be stored, by the rules that were read last; no quota is checked."""
        self._is_asked = True
        return [governed(job, self._rules.get(job.tenant)) for job in jobs] if self._rules else jobs

    async def keep_at_hand(self, store: Store) -> None:
        """Read the rules once, and again if ``at_hand`` was asked since: workers do it now and then."""
        if self._is_asked:
            self._is_asked = False
            await self.rules(store)

    async def check_schedules(self, asked: Asked, tenant: str) -> None:
        """QuotaExceeded if the tenant may not have another schedule."""
        (rule,) = await asked.survey(TenantRules((tenant,))) or (None,)
        if rule is not None and rule.schedules is not None:
            (use,) = await asked.survey(TenantsInUse(self._clock.store_now, (tenant,), rule.schedules + 1))
            check_quota(rule, use, Wanted(schedules=1))

    def _governed(
        self, jobs: Sequence[NewJob], rules: Mapping[str, TenantRule]
    ) -> tuple[Sequence[NewJob], Sequence[tuple[TenantRule, Wanted]]]:
        """The jobs as they may be stored, and what they add for each tenant that has a quota."""
        if not rules or rules.keys().isdisjoint({job.tenant for job in jobs}):
            return jobs, ()
        jobs = [governed(job, rules.get(job.tenant)) for job in jobs]
        wanted: dict[str, Wanted] = {}
        for job in jobs:
            jobs_before, bytes_before, _ = wanted.get(job.tenant, Wanted())
            size = len(job.payload_json.encode())
            wanted[job.tenant] = Wanted(jobs_before + 1, bytes_before + size)
        of_rules = ((rules[name], more) for name, more in wanted.items() if name in rules)
        return jobs, [
            (rule, more)
            for rule, more in of_rules
            if rule.waiting is not None or rule.bytes_per_day is not None
        ]

    async def _checked(self, asked: Asked, rule: TenantRule, wanted: Wanted) -> _Count:
        count, today = self._counts.setdefault(rule.name, _Count()), self._clock.now().date()
        if count.day != today:  # what was not written of another day counts for none
            count.day, count.unwritten, count.fresh_until = today, 0, float("-inf")
        if monotonic() >= count.fresh_until:
            await self._count(asked, rule, count)
        use = msgspec.structs.replace(
            count.use,
            waiting=count.use.waiting + count.jobs,
            bytes_today=count.use.bytes_today + count.unwritten,
        )
        check_quota(rule, use, wanted)
        count.jobs += wanted.jobs
        count.unwritten += wanted.bytes if rule.bytes_per_day is not None else 0
        return count

    async def _count(self, asked: Asked, rule: TenantRule, count: _Count) -> None:
        """Callers that come meanwhile go by the count before."""
        began, before = monotonic(), count.jobs
        count.fresh_until = began + FRESH_S
        most = 0 if rule.waiting is None else rule.waiting + 1
        (use,) = await asked.survey(TenantsInUse(self._clock.store_now, (rule.name,), most))
        if rule.bytes_per_day is not None:
            found = bytes_of(await asked.documents(BYTES, rule.name), self._clock.now())
            use = msgspec.structs.replace(use, bytes_today=found)
        count.use, count.jobs = use, count.jobs - before
        took = monotonic() - began
        count.fresh_until = began + min(max(FRESH_S, COUNT_SHARE * took), MOST_COUNT_S)

    async def _write_bytes(self, store: Store, rule: TenantRule, count: _Count) -> None:
        """Add what is not written yet to the tenant's document: once a second, or if it is much."""
        is_much = count.unwritten > WRITE_PART * (rule.bytes_per_day or 0)
        if not is_much and monotonic() - count.written_at < FRESH_S:
            return
        count.written_at = monotonic()
        added, count.unwritten = count.unwritten, 0
        for _ in range(ATTEMPTS):
            documents, now = await store.documents(BYTES, rule.name), self._clock.now()
            total = bytes_of(documents, now) + added
            body = msgspec.json.encode(BytesOfDay(now.date(), total)).decode()
            version = documents[0].version if documents else 0
            if await store.put_document(BYTES, rule.name, body, version, now) is not None:
                count.use = msgspec.structs.replace(count.use, bytes_today=total)
                return
        count.unwritten += added  # with the next one


def bytes_of(documents: Iterable[Document], now: datetime) -> int:
    """What a document has added up today."""
    for document in documents:
        try:
            found = msgspec.json.decode(document.body, type=BytesOfDay)
        except msgspec.DecodeError:  # edited by hand
            continue
        if found.day == now.date():
            return max(found.bytes, 0)
    return 0
