"""Job ids: UUIDv7 text, so that ids sort by the time they were made. Pure: time and chance come in."""

from __future__ import annotations

import re

_SHAPE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
LAST_GROUP = 0xFFFFFFFFFFFF  # the twelve digits that end an id


def uuid7(unix_ms: int, random_74: int) -> str:
    """The id for a millisecond and 74 random bits."""
    a = (random_74 >> 62) & 0xFFF
    b = random_74 & 0x3FFFFFFFFFFFFFFF
    h = f"{unix_ms & 0xFFFFFFFFFFFF:012x}{0x7000 | a:04x}{0x8000000000000000 | b:016x}"
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def uuid7_run(unix_ms: int, first_74: int, count: int) -> list[str]:
    """``count`` ids of one millisecond, each one above the last. They must fit: see ``room_after``."""
    head, low = uuid7(unix_ms, first_74)[:-12], first_74 & LAST_GROUP
    return [f"{head}{number:012x}" for number in range(low, low + count)]


def room_after(bits_74: int) -> int:
    """How many ids a run that starts here can have: only their last group of digits differs."""
    return LAST_GROUP - (bits_74 & LAST_GROUP) + 1


def is_id(text: str) -> bool:
    return _SHAPE.fullmatch(text) is not None
