"""The hash chain over the audit log: how a batch of entries is sealed, and whether a seal still fits. Pure.

A seal covers the digest of its entries and the digest of the seal before it, so that no entry can be
changed, removed or added afterwards without breaking its seal, and no seal without breaking the next one.
The digests are of canonical JSON: they are the same on every store.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from ..model import AuditEntry, AuditSeal

GENESIS = "0" * 64  # the digest before the first seal
_COVERED = tuple(name for name in AuditSeal.__struct_fields__ if name not in ("digest", "pruned_at"))


def sealed(head: AuditSeal | None, entries: Sequence[AuditEntry], now: datetime) -> AuditSeal:
    """The next seal, over these entries in the order of their ids."""
    ordered = sorted(entries, key=lambda entry: entry.id)
    seal = AuditSeal(
        number=1 if head is None else head.number + 1,
        previous=GENESIS if head is None else head.digest,
        content=content_digest(ordered),
        digest="",
        entries=len(ordered),
        first_id=ordered[0].id,
        last_id=ordered[-1].id,
        last_at=max(entry.at for entry in ordered),
        sealed_at=now,
    )
    return msgspec.structs.replace(seal, digest=seal_digest(seal))


def content_digest(entries: Sequence[AuditEntry]) -> str:
    """Fields that are not set do not count, so that one added to entries later breaks no older seal."""
    found = sha256()
    for entry in entries:
        given = ((name, getattr(entry, name)) for name in sorted(AuditEntry.__struct_fields__))
        found.update(_line([part for pair in given if pair[1] is not None for part in pair]))
    return found.hexdigest()


def seal_digest(seal: AuditSeal) -> str:
    return sha256(_line([getattr(seal, name) for name in _COVERED])).hexdigest()


def head_text(seal: AuditSeal) -> str:
    """``12:ab34…``: what to note elsewhere, and to compare with later."""
    return f"{seal.number}:{seal.digest}"


def broken_link(seal: AuditSeal, before: AuditSeal | None) -> str | None:
    """What is wrong with a seal itself, or with its place after the one before it."""
    if seal_digest(seal) != seal.digest:
        return "the seal was changed"
    if before is not None and seal.number != before.number + 1:
        missing = (
            f"{before.number + 1}"
            if seal.number == before.number + 2
            else (f"{before.number + 1} to {seal.number - 1}")
        )
        return f"missing before it: {missing}"
    if before is None and seal.number != 1 and seal.pruned_at is None:
        return f"missing before it: 1 to {seal.number - 1}"
    if before is None and seal.number != 1:
        return None  # the seals before it were pruned
    if seal.previous != (GENESIS if before is None else before.digest):
        return "it does not continue the seal before it: one of the two was replaced"
    return None


def broken_content(seal: AuditSeal, entries: Sequence[AuditEntry]) -> str | None:
    """What is wrong with the entries of a seal."""
    if len(entries) < seal.entries:
        return f"{seal.entries - len(entries)} of {seal.entries} entries are missing"
    if len(entries) > seal.entries:
        return f"{len(entries) - seal.entries} more than its {seal.entries} entries: forged"
    if content_digest(entries) != seal.content:
        return f"at least one of its {seal.entries} entries was changed or replaced"
    return None


def _line(values: Sequence[Any]) -> bytes:
    plain = [_utc(value) if isinstance(value, datetime) else value for value in values]
    return msgspec.json.encode(plain) + b"\n"


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
