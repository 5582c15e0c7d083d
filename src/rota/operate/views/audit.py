"""Views of audit entries."""

from __future__ import annotations

from typing import Any

import msgspec

from ...model import AuditEntry
from .base import PLATFORM, Timestamp, View, Visibility

AUTHOR = ("actor", "reason", "created_by", "ends_with")


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


def is_anonymous(entry: AuditEntry, visibility: Visibility) -> bool:
    """Whether the actor is of the installation and not of the tenant that reads: only the action is shown."""
    return entry.via != "system" and not visibility.shows_author(entry.actor_tenant)


def audit_view(entry: AuditEntry, visibility: Visibility) -> AuditView:
    if is_anonymous(entry, visibility):
        entry = msgspec.structs.replace(
            entry,
            actor=PLATFORM,
            role=None,
            message=None,
            request_id=None,
            address=None,
            before_json=_without_author(entry.before_json),
            after_json=_without_author(entry.after_json),
        )
    changed = ("before", "after", "message")
    same = {name: getattr(entry, name) for name in AuditView.__struct_fields__ if name not in changed}
    return AuditView(
        **same,
        before=visibility.snapshot(entry.before_json),
        after=visibility.of(entry.after_json)
        if _is_of_a_task(entry)
        else visibility.snapshot(entry.after_json),
        message=visibility.message(entry.message) if _may_quote(entry) else entry.message,
    )


def _without_author(text: str | None) -> str | None:
    """A snapshot without who made the object, and why."""
    try:
        found = msgspec.json.decode(text or "null")
    except msgspec.DecodeError:
        return None
    if not isinstance(found, dict):
        return text
    return msgspec.json.encode({k: v for k, v in found.items() if k not in AUTHOR}).decode()


def _is_of_a_task(entry: AuditEntry) -> bool:
    """Recorded by a task itself, or about the error of one: its details are as a payload."""
    return entry.via == "system" and (entry.object or "").startswith("job:")


def _may_quote(entry: AuditEntry) -> bool:
    """The reason that an operator gives does not quote a payload; what a task or a denial says may."""
    if entry.via == "system":
        return _is_of_a_task(entry)
    return entry.result != "done" and entry.action.partition(".")[0] in ("job", "jobs", "schedule")


class ChainProblem(View, frozen=True, kw_only=True):
    """A seal of the audit log's hash chain that does not hold, and what is wrong."""

    seal: int
    text: str


class AuditVerification(View, frozen=True, kw_only=True):
    """The result of checking seals of the audit log's hash chain."""

    ok: bool
    head: str | None  # NUMBER:DIGEST of the newest seal: note it elsewhere, and compare with it later
    seals: int  # that were checked
    entries: int  # that they cover
    late: int  # entries whose time is an hour or more before the seal preceding theirs: backdated, or slow
    pruned_until: int | None  # up to this seal, the entries were deleted by age
    unsealed: int  # entries that have no seal yet
    oldest_unsealed_at: Timestamp | None
    problems: tuple[ChainProblem, ...]  # the first broken seal first
    next: int | None = None  # send it as ``after`` to check the following seals; None: these were the last
