"""The store machine with rules: limits, rates, budgets and weights that come, change and go meanwhile."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from machine.model import LEASE_S
from machine.store_machine import StoreMachine, delays, picks, workers
from rota.model import ClaimRequest, Limit, LimitRule, Limits, State, TenantRule, TenantsInUse
from rota.testing.conformance.factories import change

NAMES = (
    "queue:a",
    "queue:b",
    "task:work",
    "task:play",
    "tenant:x",
    "tenant:y",
    "key:k1",
    "key:acc:*",
    "key:*",
)

rates = st.sampled_from([("1/10s", 1), ("1/10s", 3), ("10/m", 4), ("1/40s", 2)])
runnings = st.integers(1, 3)


@st.composite
def limits(draw: st.DrawFn, name: str) -> Limit:
    strict = name.startswith("key:") and draw(st.booleans())
    kind = draw(st.sampled_from(["running", "running", "rate", "both"]))
    rate, burst = draw(rates) if kind != "running" else (None, None)
    running = draw(runnings) if kind != "rate" else None
    return Limit(running=running, rate=rate, burst=burst, strict=strict)


named_limits = st.sampled_from(NAMES).flatmap(lambda name: st.tuples(st.just(name), st.none() | limits(name)))


class LimitMachine(StoreMachine):
    """Its jobs have keys, units and prices; its rules change while they wait and run."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.versions: dict[str, int] = {}

    # --- rules -------------------------------------------------------------------------------

    @initialize(chosen=st.lists(named_limits, min_size=1, max_size=3))
    def set_some(self, chosen: list[tuple[str, Limit | None]]) -> None:
        for name, limit in chosen:
            self.put(LimitRule(name=name, chosen=limit))

    @rule(chosen=named_limits)
    def set_limit(self, chosen: tuple[str, Limit | None]) -> None:
        self.put(LimitRule(name=chosen[0], chosen=chosen[1]))

    @rule(name=st.sampled_from(NAMES), running=st.sampled_from([1, 1, 5]))
    def change_running(self, name: str, running: int) -> None:
        self.put(LimitRule(name=name, chosen=Limit(running=running)))

    @rule(
        tenant=st.sampled_from(["x", "y"]),
        weight=st.sampled_from([1.0, 0.5, 3.0]),
        budget=st.sampled_from([None, 50.0, 100.0]),
    )
    def set_tenant(self, tenant: str, weight: float, budget: float | None) -> None:
        period = None if budget is None else "hour"
        self.put(TenantRule(name=tenant, weight=weight, budget=budget, period=period))

    def put(self, rule: LimitRule | TenantRule) -> None:
        known = f"{type(rule).__name__} {rule.name}"
        versioned = msgspec.structs.replace(rule, version=self.versions.get(known, 0))
        (version,) = self.run(self.store.put_rules([versioned], self.now))
        assert version is not None
        self.versions[known] = version
        self.model.rules.put(rule, self.now)

    # --- working -----------------------------------------------------------------------------

    @rule(limit=st.integers(1, 6), free=st.integers(0, 3), worker=workers)
    def claim_for_free_slots(self, limit: int, free: int, worker: str) -> None:
        self.claim_and_compare(
            ClaimRequest(worker=worker, limit=limit, lease_s=LEASE_S, free=min(free, limit))
        )

    @rule(limit=st.integers(1, 6), task=st.sampled_from(["work", "play"]), worker=workers)
    def claim_one_task(self, limit: int, task: str, worker: str) -> None:
        self.claim_and_compare(ClaimRequest(worker=worker, limit=limit, lease_s=LEASE_S, tasks=(task,)))

    @rule(limit=st.integers(1, 6), held=st.integers(0, 5), worker=workers)
    def claim_while_holding(self, limit: int, held: int, worker: str) -> None:
        want = ClaimRequest(worker=worker, limit=limit, lease_s=LEASE_S, holds=(("x", held),) if held else ())
        self.claim_and_compare(want)

    @precondition(lambda self: self.leases)
    @rule(pick=picks)
    def release(self, pick: int) -> None:
        """Return a job that never began."""
        job = self.some_lease(pick)
        self.settle_and_compare([change(job, State.QUEUED, attempt=job.attempt - 1, run_at=job.run_at)])

    @precondition(lambda self: self.leases)
    @rule(
        pick=picks,
        cents=st.sampled_from([0.0, 30.0, 60.0]),
        state=st.sampled_from([State.SUCCEEDED, State.FAILED]),
    )
    def finish_with_a_cost(self, pick: int, cents: float, state: State) -> None:
        job = self.some_lease(pick)
        self.settle_and_compare([change(job, state, cost_cents=cents, started_at=self.now)])

    @precondition(lambda self: self.leases)
    @rule(pick=picks, delay=delays)
    def fail_and_retry_later(self, pick: int, delay: int) -> None:
        job = self.some_lease(pick)
        run_at = self.later(delay) if delay else None
        self.settle_and_compare([change(job, State.QUEUED, run_at=run_at, started_at=self.now)])

    @rule()
    def wait_for_the_next_hour(self) -> None:
        self.now = self.later(1800)

    # --- invariants ---------------------------------------------------------------

    @invariant()
    def use_is_what_runs(self) -> None:
        """What the store shows of its limits is counted from the jobs that run."""
        running = [job for job in self.model.jobs.values() if job.state is State.RUNNING]
        found = {held.name: held for held in self.run(self.store.survey(Limits(self.now)))}
        assert found.keys() == self.model.rules.limits.keys()
        for name, held in found.items():
            limit = self.model.rules.limits[name].limit
            assert limit is not None and (held.most, held.rate) == (limit.running, limit.rate)
            if not name.endswith("*"):
                assert held.running == sum(name in self.model.rules.over(job) for job in running), name

    @invariant()
    def budgets_are_what_was_spent(self) -> None:
        rules = self.model.rules
        names = tuple(sorted(name for name, rule in rules.tenants.items() if rule.budget is not None))
        if not names:
            return
        running = [job for job in self.model.jobs.values() if job.state is State.RUNNING]
        for use in self.run(self.store.survey(TenantsInUse(self.now, names))):
            assert use.spent == rules.spent(use.name, "hour", self.now), use
            assert use.reserved == sum(job.price or 0.0 for job in running if job.tenant == use.name), use
