"""Views of audit entries."""

from __future__ import annotations

from typing import Any

from ...core.payload.masking import HIDDEN
from ...model import AuditEntry
from .base import Timestamp, View, Visibility


class AuditView(View, frozen=True, kw_only=True):
    """An audit entry."""

    id: str
    at: Timestamp
    action: str
    actor: str
    role: str | None
    via: str
    tenant: str | None
    object: str | None
    before: Any
    after: Any
    result: str
    message: str | None
    request_id: str | None
    address: str | None


def audit_view(entry: AuditEntry, visibility: Visibility) -> AuditView:
    same = {n: getattr(entry, n) for n in AuditView.__struct_fields__ if n not in ("before", "after")}
    return AuditView(
        **same,
        before=_snapshot(entry.before_json, visibility),
        after=_snapshot(entry.after_json, visibility),
    )


def _snapshot(text: str | None, visibility: Visibility) -> Any:
    """A snapshot in an audit entry; a schedule's payload only for actors who see payloads."""
    snapshot = visibility.open(text)
    if visibility.payloads or not isinstance(snapshot, dict) or "payload" not in snapshot:
        return snapshot
    return {**snapshot, "payload": HIDDEN}
