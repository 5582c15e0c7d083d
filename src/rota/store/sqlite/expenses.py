"""What tenants have spent: added up when a job that cost something is settled, by hour, day and month."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.jobs.periods import period_begins
from ...model import Period, Settlement
from .rows import DAY, instant, micros
from .statements import statement
from .writer import Transaction

UNITS: tuple[Period, ...] = ("hour", "day", "month")
KEPT: dict[str, int] = {"hour": 2 * DAY, "day": 400 * DAY, "month": 3660 * DAY}


def spend(transaction: Transaction, changes: Sequence[Settlement], now: int) -> None:
    """Add the costs of these settlements to what their tenants have spent."""
    amounts: dict[str, float] = {}
    for change in changes:
        if change.cost_cents > 0:
            amounts[change.tenant] = amounts.get(change.tenant, 0.0) + change.cost_cents
    if not amounts:
        return
    begins = {unit: micros(period_begins(unit, instant(now))) for unit in UNITS}
    rows = [(name, unit, begins[unit], amount) for name, amount in amounts.items() for unit in UNITS]
    transaction.executemany(statement("spend"), rows)


def prune(transaction: Transaction, now: int) -> None:
    for unit, kept in KEPT.items():
        transaction.execute("DELETE FROM rota_spending WHERE unit = ? AND begins < ?", (unit, now - kept))
