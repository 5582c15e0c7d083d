"""Views of gates."""

from __future__ import annotations

from ...model import Gate
from .base import Timestamp, View


class GateView(View, frozen=True, kw_only=True):
    """A pause in force."""

    id: str
    scope: str
    name: str | None
    tenant: str | None
    reason: str
    actor: str
    since_at: Timestamp
    until_at: Timestamp | None
    by_tenant: str | None = None  # the tenant of the operator who set it; None: an operator for all tenants
    warning: str | None = None  # only in the answer to a pause: why it may have no effect


def gate_view(gate: Gate) -> GateView:
    return GateView(**{name: getattr(gate, name) for name in Gate.__struct_fields__}, id=gate.id)
