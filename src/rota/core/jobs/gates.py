"""Pauses (gates): which are in force at a time, and how they narrow a worker's claim. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from ...model import ClaimRequest, Gate, gate_id


def active(gates: Iterable[Gate], now: datetime) -> list[Gate]:
    """Those that have not expired."""
    return [gate for gate in gates if gate.until_at is None or gate.until_at > now]


def over_job(gates: Iterable[Gate], queue: str, task: str, tenant: str) -> list[Gate]:
    """The gates that keep such a job from starting, the widest first."""
    ids = ("all", gate_id("queue", queue), gate_id("task", task), gate_id("tenant", tenant))
    found = {gate.id: gate for gate in gates}
    return [found[one] for one in ids if one in found]


def over_schedule(gates: Iterable[Gate], tenant: str, name: str) -> Gate | None:
    """A schedule stops for a gate of its own only: its jobs wait at the other gates."""
    wanted = gate_id("schedule", name, tenant)
    return next((gate for gate in gates if gate.id == wanted), None)


def narrow_claim(request: ClaimRequest, gates: Sequence[Gate]) -> ClaimRequest | None:
    """The claim without what is paused; None if nothing is left to claim."""
    if not gates:
        return request
    if any(gate.scope == "all" for gate in gates):
        return None
    closed = _names(gates, "queue")
    tasks = (
        request.tasks
        if request.tasks is None
        else tuple(t for t in request.tasks if t not in _names(gates, "task"))
    )
    queues = request.queues if request.queues is None else tuple(q for q in request.queues if q not in closed)
    if tasks == () or queues == ():
        return None
    return msgspec.structs.replace(
        request,
        tasks=tasks,
        queues=queues,
        exclude_queues=tuple(dict.fromkeys((*request.exclude_queues, *sorted(closed)))),
        exclude_tenants=tuple(sorted(_names(gates, "tenant"))),
    )


def _names(gates: Iterable[Gate], scope: str) -> frozenset[str]:
    return frozenset(gate.name for gate in gates if gate.scope == scope and gate.name is not None)
