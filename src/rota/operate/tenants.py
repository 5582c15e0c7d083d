"""Actions on tenants: what they have and use, and what they may: weight, quotas, budget, retention.

A tenant needs no rule: it is there as soon as it has a job. Limits of tenants are limits like others, and a
pause is a gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from ..core.jobs.options import name_text
from ..core.tenants import budget_text, changed, is_same
from ..errors import IllegalMove, NotFound
from ..model import (
    DepthByTenant,
    Gate,
    Held,
    Job,
    JobFilter,
    Limits,
    Page,
    PageRequest,
    QueueDepth,
    ScheduleFilter,
    State,
    TenantRule,
    TenantRules,
    TenantsInUse,
    TenantUse,
    gate_id,
)
from ..runtime.heavy import heavy_response
from ..runtime.tenant_watch import BYTES, bytes_of
from ..store.protocol import Store
from .actions import ActionGroup, requires
from .requests import PutTenantRequest, TenantsRequest
from .views import TenantView, budget_view, gate_view, quota_views, tenant_limit_view

SAMPLE = 1000  # the newest jobs, of which cost and outcomes are counted
MOST_READ = 100_000  # live jobs, or schedules
ATTEMPTS = 10  # while others change the same rule


class TenantActions(ActionGroup):
    """Actions on tenants."""

    subject = "tenant"

    @requires("read")
    async def list(self, request: TenantsRequest) -> Page[TenantView]:
        """List tenants with live jobs, schedules, a rule or a pause, by name."""
        own = self.operations.tenant(None)
        return await heavy_response(("tenants", own, request), lambda work: self._page(request))

    @requires("read")
    async def show(self, name: str) -> TenantView:
        """Show one tenant: what it has in the store, and what it may."""
        name_text("name", name)
        self.operations.tenant(name)
        facts = await self._facts(name)
        known = facts.names | {gate.name for gate in facts.gates.values() if gate.scope == "tenant"}
        (view,) = await self._views(facts, [name])
        is_known = name in known or view.limit is not None or view.spent_cents
        if not is_known and self.operations.actor.tenant is None:
            raise NotFound(f"tenant {name!r} has no jobs, no schedules, no rule, no limit and no pause")
        return view

    @requires("operate.shared")
    async def put(self, name: str, request: PutTenantRequest) -> TenantView:
        """Change what a tenant may: given fields change, null clears one, the others stay."""
        given = _given(request)
        name_text("name", name)
        async with self.operations.audited("tenant.set", f"tenant:{name}", name) as draft:
            before = await self._write(name, lambda rule: changed(rule, given))
            after = changed(before, given)
            draft.before, draft.after = rule_snapshot(before), rule_snapshot(after)
            draft.is_needed = not is_same(before, after)
        (view,) = await self._views(await self._facts(name), [name])
        return view

    @requires("operate.shared")
    async def drop(self, name: str) -> None:
        """Delete a tenant's rule: weight 1, no quotas and no budget. Its jobs, limit and pause stay."""
        name_text("name", name)
        async with self.operations.audited("tenant.drop", f"tenant:{name}", name) as draft:
            before = await self._write(name, lambda rule: TenantRule(name=name, version=rule.version))
            if before.is_empty:
                raise NotFound(f"tenant {name!r} has no rule")
            draft.before = rule_snapshot(before)

    async def _write(self, name: str, change: Callable[[TenantRule], TenantRule]) -> TenantRule:
        """Write the rule, also while others write it; the rule as it was before."""
        store = await self.operations.store()
        for _ in range(ATTEMPTS):
            found = await store.survey(TenantRules((name,)))
            before = found[0] if found else TenantRule(name=name)
            after = change(before)
            if is_same(before, after):
                return before
            if (await store.put_rules([after], self.services.clock.store_now))[0] is not None:
                self.services.runtime.tenants.forget()
                return before
        raise IllegalMove(f"tenant {name!r} is being changed by others: try again")

    # --- views -----------------------------------------------------------------------------------

    async def _page(self, request: TenantsRequest) -> Page[TenantView]:
        facts = await self._facts(self.operations.tenant(None))
        names = facts.names | {
            gate.name for gate in facts.gates.values() if gate.scope == "tenant" and gate.name
        }
        after = request.cursor or ""
        found = sorted(name for name in names if self.operations.sees(name) and name > after)
        shown = found[: request.limit]
        next = shown[-1] if len(shown) < len(found) else None
        return Page(items=await self._views(facts, shown), next=next)

    async def _facts(self, tenant: str | None) -> TenantFacts:
        """What is known about this tenant, or about all of them."""
        store, now = await self.operations.store(), self.services.clock.now()
        depths = await store.survey(DepthByTenant(now, MOST_READ))
        where = JobFilter(tenant=tenant)
        rules = await store.survey(TenantRules())
        return TenantFacts(
            depths,
            complete=sum(d.due + d.due_later + d.running for d in depths.values()) < MOST_READ,
            rules={rule.name: rule for rule in rules},
            schedules=await _schedules_by_tenant(store, tenant),
            newest=_by_tenant((await store.jobs(where, PageRequest(limit=SAMPLE, brief=True))).items),
            gates={gate.id: gate for gate in await self.operations.active_gates()},
            now=now,
            shows_shares=self.operations.actor.tenant is None,
        )

    async def _views(self, facts: TenantFacts, names: Sequence[str]) -> Sequence[TenantView]:
        store = await self.operations.store()
        at = self.services.clock.store_now
        in_use = {use.name: use for use in await store.survey(TenantsInUse(at, tuple(names), MOST_READ))}
        limits = await store.survey(Limits(at, tuple(f"tenant:{name}" for name in names)))
        held = {one.name: one for one in limits}
        for name in names:
            if (rule := facts.rules.get(name)) is not None and rule.bytes_per_day is not None:
                found = bytes_of(await store.documents(BYTES, name), facts.now)
                in_use[name] = msgspec.structs.replace(in_use[name], bytes_today=found)
        return [facts.view(name, in_use.get(name), held.get(f"tenant:{name}")) for name in names]


class TenantFacts(NamedTuple):
    """What was read about tenants, from bounded numbers of jobs."""

    depths: Mapping[str, QueueDepth]
    complete: bool
    rules: Mapping[str, TenantRule]
    schedules: Mapping[str, int]
    newest: Mapping[str, Sequence[Job]]
    gates: Mapping[str, Gate]
    now: datetime
    shows_shares: bool  # how many others wait is not a tenant's affair

    @property
    def names(self) -> set[str]:
        return {*self.depths, *self.rules, *self.schedules, *self.newest}

    def view(self, name: str, use: TenantUse | None, held: Held | None) -> TenantView:
        rule = self.rules.get(name) or TenantRule(name=name)
        use = use or TenantUse(name=name)
        depth = self.depths.get(name, QueueDepth())
        jobs = self.newest.get(name, ())
        gate = self.gates.get(gate_id("tenant", name))
        return TenantView(
            name=name,
            due=depth.due,
            due_later=depth.due_later,
            running=depth.running,
            oldest_due_s=depth.oldest_due_s,
            schedules=self.schedules.get(name, 0),
            cost_cents=sum(job.cost_cents for job in jobs),
            estimated=not self.complete,
            gate=None if gate is None else gate_view(gate),
            waiting=max(depth.due + depth.due_later, use.waiting),
            done=sum(job.state is State.SUCCEEDED for job in jobs),
            failed=sum(job.state is State.FAILED for job in jobs),
            weight=rule.weight,
            share=self.share(name) if self.shows_shares else None,
            max_priority=rule.max_priority,
            limit=None if held is None else tenant_limit_view(held),
            quotas=quota_views(rule, use),
            spent_cents=use.spent,
            budget=budget_view(rule, use, self.now),
            retention_days=rule.retention_days,
            updated_at=rule.updated_at,
        )

    def share(self, name: str) -> float | None:
        """Its part of the weights of all tenants that have due jobs."""
        weights = {
            one: self.rules[one].weight if one in self.rules else 1.0
            for one, depth in self.depths.items()
            if depth.due
        }
        return weights[name] / sum(weights.values()) if name in weights else None


def rule_snapshot(rule: TenantRule) -> dict[str, Any] | None:
    """The rule as the audit log keeps it: what is set, as it is written."""
    if rule.is_empty:
        return None
    names = ("max_priority", "waiting", "schedules", "bytes_per_day", "budget_alert", "retention_days")
    found: dict[str, Any] = {"weight": rule.weight, "budget": budget_text(rule)}
    found |= {name: getattr(rule, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _given(request: PutTenantRequest) -> dict[str, Any]:
    fields = msgspec.structs.asdict(request)
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}


def _by_tenant(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.tenant, []).append(job)
    return found


async def _schedules_by_tenant(store: Store, tenant: str | None) -> dict[str, int]:
    found, cursor = dict[str, int](), None
    while True:
        page = await store.schedules(ScheduleFilter(tenant=tenant), PageRequest(limit=1000, cursor=cursor))
        for schedule in page.items:
            found[schedule.tenant] = found.get(schedule.tenant, 0) + 1
        if (cursor := page.next) is None or sum(found.values()) > MOST_READ:
            return found
