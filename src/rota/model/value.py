"""The base of all values, and the ids of jobs."""

from __future__ import annotations

import msgspec

JobId = str


class Value(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of the frozen, slotted, keyword-only values. Never part of a cycle: not tracked by gc."""
