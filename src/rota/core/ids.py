"""Job ids: UUIDv7 text, so that ids sort by the time they were created. Pure: time and chance come in."""

from __future__ import annotations

import re

_SHAPE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
LAST_GROUP = 0xFFFFFFFFFFFF  # the twelve digits that end an id


def uuid7(unix_ms: int, random_74: int) -> str:
    """The id for a millisecond and 74 random bits."""
    head, low = unix_ms & 0xFFFFFFFFFFFF, random_74 & LAST_GROUP
    a, b = random_74 >> 62 & 0xFFF, random_74 >> 48 & 0x3FFF
    return f"{head >> 16:08x}-{head & 0xFFFF:04x}-{0x7000 | a:04x}-{0x8000 | b:04x}-{low:012x}"


def is_id(text: str) -> bool:
    return _SHAPE.fullmatch(text) is not None


def unix_ms(id: str) -> int | None:
    """The millisecond in a UUIDv7; None for other ids, which do not sort by time."""
    return int(id[:8] + id[9:13], 16) if id[14] == "7" else None
