"""Views of gates."""

from __future__ import annotations

import msgspec

from ...model import Gate
from .base import PLATFORM, Timestamp, View, Visibility


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


def visible_gate(gate: Gate, visibility: Visibility) -> Gate:
    """A tenant does not learn who acts for all tenants, nor why what they share is paused."""
    if visibility.shows_author(gate.by_tenant):
        return gate
    is_shared = gate.scope not in ("tenant", "schedule")
    return msgspec.structs.replace(gate, actor=PLATFORM, reason="" if is_shared else gate.reason)
