"""Checks the hash chain over the audit log. Reads only, a bounded number of seals at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from ..core.audit_chain import broken_content, broken_link, head_text
from ..errors import OptionError
from ..model import AuditChain, AuditChainEnds, AuditEntry, AuditFilter, AuditSeal, AuditSeals, PageRequest
from ..store.protocol import Store
from .requests import VerifyAuditRequest
from .views import AuditVerification, ChainProblem

LATE = timedelta(hours=1)


class Judged(NamedTuple):
    """By what a seal whose entries were deleted is judged."""

    retention: timedelta
    now: datetime


async def verify(
    store: Store, request: VerifyAuditRequest, by: Judged, again: bool = True
) -> AuditVerification:
    """Check the seals after ``request.after``: ``next`` is where to continue, None after the last."""
    ends = await store.survey(AuditChainEnds())
    expected = _expected(request.expect_head)
    problems: list[ChainProblem] = []
    before, seals = await _seals(store, request)
    checked = late = 0
    for seal in seals:
        entries = await _entries(store, seal)
        problems += _problems(seal, before, entries, by)
        if expected is not None and expected[0] == seal.number and expected[1] != seal.digest:
            problems.append(ChainProblem(seal=seal.number, text="its digest is not the expected one"))
        late += sum(before is not None and entry.at < before.sealed_at - LATE for entry in entries)
        checked += len(entries)
        before = seal
    next_ = seals[-1].number if len(seals) == request.limit else None
    began, ends = ends, await store.survey(AuditChainEnds())
    if next_ is None:
        problems += _beyond(ends, expected)
    if problems and again and began.base != ends.base:  # entries were deleted by age meanwhile
        return await verify(store, request, by, again=False)
    return AuditVerification(
        ok=not problems,
        head=None if ends.head is None else head_text(ends.head),
        seals=len(seals),
        entries=checked,
        late=late,
        pruned_until=_pruned(ends),
        unsealed=ends.unsealed,
        oldest_unsealed_at=ends.oldest_unsealed_at,
        problems=tuple(problems),
        next=next_,
    )


def _expected(text: str | None) -> tuple[int, str] | None:
    """``12:ab34…``, as an earlier verification printed it."""
    if text is None:
        return None
    number, _, digest = text.strip().partition(":")
    if not (number.isascii() and number.isdigit() and len(digest) == 64):
        raise OptionError(
            f"expect_head={text!r}: write it as an earlier verification printed it, NUMBER:DIGEST"
        )
    return int(number), digest.lower()


async def _seals(store: Store, request: VerifyAuditRequest) -> tuple[AuditSeal | None, Sequence[AuditSeal]]:
    """The seal before the first to check, and those to check."""
    if request.after is None:
        return None, await store.survey(AuditSeals(0, request.limit))
    found = await store.survey(AuditSeals(request.after - 1, request.limit + 1))
    return (found[0], found[1:]) if found and found[0].number == request.after else (None, found)


async def _entries(store: Store, seal: AuditSeal) -> Sequence[AuditEntry]:
    """At most one more than it covers: that is enough to see that there are too many."""
    page = PageRequest(limit=seal.entries + 1, newest_first=False)
    return (await store.audit(AuditFilter(seal=seal.number), page)).items


def _problems(
    seal: AuditSeal, before: AuditSeal | None, entries: Sequence[AuditEntry], by: Judged
) -> list[ChainProblem]:
    found = [broken_link(seal, before)]
    if seal.pruned_at is None:
        found.append(broken_content(seal, entries))
    elif before is not None and before.pruned_at is None:
        found.append("it is marked as pruned, but the seal before it is not")
    elif min(seal.last_at, seal.sealed_at) > min(seal.pruned_at, by.now + LATE) - by.retention:
        found.append(
            f"its entries were deleted on {seal.pruned_at:%Y-%m-%d}, before the retention of "
            f"{by.retention.days} days was over, unless it was shorter then"
        )
    return [ChainProblem(seal=seal.number, text=text) for text in found if text is not None]


def _beyond(ends: AuditChain, expected: tuple[int, str] | None) -> list[ChainProblem]:
    """What the ends of the chain show: entries that no seal covers, and what was removed there."""
    first = 0 if ends.base is None else ends.base.number
    last = 0 if ends.head is None else ends.head.number
    found = []
    if ends.stray is not None:
        text = "the seal is missing, but its entries are there"
        if ends.stray == first:
            text = "its entries were deleted by age, but there are some: forged"
        found.append(ChainProblem(seal=ends.stray, text=text))
    if expected is not None and expected[0] > last:
        text = "the expected seal is missing: the chain ends before it"
        found.append(ChainProblem(seal=expected[0], text=text))
    elif expected is not None and expected[0] < first:
        text = "the expected seal is gone, by age or not: compare with a newer head"
        found.append(ChainProblem(seal=expected[0], text=text))
    return found


def _pruned(ends: AuditChain) -> int | None:
    return ends.base.number if ends.base is not None and ends.base.pruned_at is not None else None


def age_s(ends: AuditChain, now: datetime) -> float:
    """For how long the oldest entry without a seal has been there."""
    return 0.0 if ends.oldest_unsealed_at is None else (now - ends.oldest_unsealed_at).total_seconds()
