"""What a store reports about itself, and the small documents it keeps."""

from __future__ import annotations

from datetime import datetime

from .choices import Level
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
    """What a store can do beyond the protocol; data, so that callers never ask for its type."""

    transactional: bool  # a job can join the caller's own transaction
    push: bool  # wake-ups reach other processes without polling
    shared: bool  # other processes can open the same store
