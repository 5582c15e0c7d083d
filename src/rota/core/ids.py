"""Job ids: UUIDv7 text, so that ids sort by the time they were made. Pure: time and chance come in."""

from __future__ import annotations

import re

_SHAPE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)


def uuid7(unix_ms: int, random_74: int) -> str:
    """The id for a millisecond and 74 random bits."""
    a = (random_74 >> 62) & 0xFFF
    b = random_74 & 0x3FFFFFFFFFFFFFFF
    h = f"{unix_ms & 0xFFFFFFFFFFFF:012x}{0x7000 | a:04x}{0x8000000000000000 | b:016x}"
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def is_id(text: str) -> bool:
    return _SHAPE.fullmatch(text) is not None
