"""What a store says about itself, the small documents it keeps, and what it deletes by age."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from .choices import Level, State, Wakes
from .value import Value


class Finding(Value, frozen=True, kw_only=True):
    """The result of one check: what was checked, its level, and the remedy."""

    check: str
    level: Level
    text: str
    remedy: str | None = None


class Document(Value, frozen=True, kw_only=True):
    """A small versioned JSON document: a worker, a gate, a limit, a token …"""

    kind: str
    key: str
    body: str  # JSON
    version: int
    updated_at: datetime


class Capabilities(Value, frozen=True, kw_only=True):
    """What a store can do beyond its methods; data, so that callers never ask for its type."""

    transactional: bool  # a job can join the caller's own transaction
    shared: bool  # other processes can open the same store
    durable: bool  # an acknowledged write survives a crash of its process, its server and its machine
    atomic_batch: bool  # all jobs of one insert, and all settlements of one turn, are stored or none is
    wakes: Wakes  # which hints reach other processes: none, that there is work, or in which queue
    searches: bool  # serves JobFilter.payload and JobFilter.error
    precision_s: float  # of stored times
    largest_job: int | None = None  # bytes of a payload or output; None: whatever max_payload_bytes allows

    @property
    def push(self) -> bool:
        """Wake-ups reach other processes without polling."""
        return self.wakes != "none"


class RetentionCutoffs(Value, frozen=True, kw_only=True):
    """What has been kept long enough: everything older than these times."""

    jobs: Mapping[State, datetime] = {}  # by final state: finished before
    audit: datetime | None = None  # audit entries written before; None: keep all


class PruneResult(Value, frozen=True, kw_only=True):
    """How much one call of ``Store.maintain`` deleted."""

    jobs: int = 0
    audit_entries: int = 0

    def is_complete(self, limit: int) -> bool:
        """Whether nothing was left to delete for a call with this limit."""
        return max(self.jobs, self.audit_entries) < limit
