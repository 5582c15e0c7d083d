"""Numbers in a sentence. Pure."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """``1 job``, ``2 jobs``, ``1,200 jobs``."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"
