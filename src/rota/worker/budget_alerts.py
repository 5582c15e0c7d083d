"""Says when a tenant has spent a part of its budget, or all of it: once per period and level, by any worker.

Writes the audit entry and gives the event. Never keeps a job from starting: the claim reads budgets itself.
A document for each tenant says what has been notified. Of several workers that notice it, one succeeds.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from itertools import islice

import msgspec

from ..core.jobs.periods import period_begins
from ..core.tenants import BudgetLevel, budget_text, is_further, level, money
from ..model import AuditEntry, Document, TenantRule, TenantRules, TenantsInUse, Value
from ..runtime.clock import Clock
from ..runtime.events import Event
from ..store.calls import find_document
from ..store.protocol import Store

log = logging.getLogger("rota.budgets")

KIND = "budget"
CHECK_EVERY_S = 10.0
MOST_CHECK_S = 60.0
BATCH = 200  # tenants that are read at once
ACTIONS: dict[BudgetLevel, str] = {"alert": "tenant.budget_alert", "reached": "tenant.budget_reached"}


class BudgetNotice(Value, frozen=True, kw_only=True):
    """What was last notified about a budget, and which: another budget or period starts again."""

    budget: str
    begins: datetime
    level: BudgetLevel


async def raise_alerts(store: Store, clock: Clock, worker: str) -> list[Event]:
    """Record every budget that has come to a further level; the events, for the hooks."""
    rules = [rule for rule in await store.survey(TenantRules()) if rule.budget is not None]
    events: list[Event] = []
    left = iter(rules)
    while some := list(islice(left, BATCH)):
        names = tuple(rule.name for rule in some)
        spent = {use.name: use.spent for use in await store.survey(TenantsInUse(clock.store_now, names, 0))}
        for rule in some:
            found = level(rule, spent.get(rule.name, 0.0))
            if found is not None:
                events += await _notify(store, clock, worker, rule, found, spent[rule.name])
    return events


async def _notify(
    store: Store, clock: Clock, worker: str, rule: TenantRule, found: BudgetLevel, spent: float
) -> Sequence[Event]:
    now = clock.now()
    notice = BudgetNotice(
        budget=budget_text(rule) or "", begins=period_begins(rule.period or "day", now), level=found
    )
    stored = await find_document(store, KIND, rule.name)
    if not is_further(found, _noted_level(stored, notice)):
        return ()
    body, version = msgspec.json.encode(notice).decode(), 0 if stored is None else stored.version
    if await store.put_document(KIND, rule.name, body, version, now) is None:
        return ()  # another worker was quicker
    message = f"tenant {rule.name} has spent {money(spent)} of {notice.budget}"
    message += (
        f", {spent / (rule.budget or spent):.0%}" if found == "alert" else ": nothing more of it begins"
    )
    log.warning("%s", message)
    entry = AuditEntry(
        action=ACTIONS[found],
        at=now,
        actor=f"worker:{worker}",
        tenant=rule.name,
        object=f"tenant:{rule.name}",
        message=message,
    )
    await store.append_audit([entry])
    return [
        Event(
            name=ACTIONS[found],
            at=now,
            worker=worker,
            tenant=rule.name,
            message=message,
            spent_cents=spent,
            budget_cents=rule.budget,
        )
    ]


def _noted_level(stored: Document | None, notice: BudgetNotice) -> BudgetLevel | None:
    """The level that was noted of the same budget in the same period."""
    try:
        noted = None if stored is None else msgspec.json.decode(stored.body, type=BudgetNotice)
    except msgspec.DecodeError:  # edited by hand
        return None
    if noted is None or (noted.budget, noted.begins) != (notice.budget, notice.begins):
        return None
    return noted.level
