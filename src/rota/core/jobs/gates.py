"""Pause switches: which of them stand at an instant, and what they leave of a worker's wish. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from ...model import ClaimRequest, Gate, gate_id


def active(gates: Iterable[Gate], now: datetime) -> list[Gate]:
    """Those whose end has not come."""
    return [gate for gate in gates if gate.until_at is None or gate.until_at > now]


def over_job(gates: Iterable[Gate], queue: str, task: str, tenant: str) -> list[Gate]:
    """The gates that keep such a job from being begun, the widest first."""
    ids = ("all", gate_id("queue", queue), gate_id("task", task), gate_id("tenant", tenant))
    found = {gate.id: gate for gate in gates}
    return [found[one] for one in ids if one in found]


def over_schedule(gates: Iterable[Gate], tenant: str, name: str) -> Gate | None:
    """A schedule stops for a gate of its own only: the jobs it makes wait at the other gates."""
    wanted = gate_id("schedule", name, tenant)
    return next((gate for gate in gates if gate.id == wanted), None)


def narrow_claim(want: ClaimRequest, gates: Sequence[Gate]) -> ClaimRequest | None:
    """What may still be asked for; None: nothing."""
    if not gates:
        return want
    if any(gate.scope == "all" for gate in gates):
        return None
    closed = _names(gates, "queue")
    tasks = (
        want.tasks if want.tasks is None else tuple(t for t in want.tasks if t not in _names(gates, "task"))
    )
    queues = want.queues if want.queues is None else tuple(q for q in want.queues if q not in closed)
    if tasks == () or queues == ():
        return None
    return msgspec.structs.replace(
        want,
        tasks=tasks,
        queues=queues,
        exclude_queues=tuple(dict.fromkeys((*want.exclude_queues, *sorted(closed)))),
        exclude_tenants=tuple(sorted(_names(gates, "tenant"))),
    )


def _names(gates: Iterable[Gate], scope: str) -> frozenset[str]:
    return frozenset(gate.name for gate in gates if gate.scope == scope and gate.name is not None)
