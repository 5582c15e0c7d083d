"""Which failures are the same: a fingerprint of the task, the error's type and its message. Pure.

What differs each time is left out of the message: numbers, hexadecimal, UUIDs, names in quotes. Every
pattern here reads a text once, forwards: a stored message is hostile, and must not cost more than
its length.
"""

from __future__ import annotations

import hashlib
import re

QUOTED = re.compile(r"""(?<!\w)(?:'[^']*'|"[^"]*"|`[^`]*`|“[^“”]*”|«[^«»]*»)(?!\w)""")
UUID = re.compile(r"(?<!\w)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?!\w)", re.IGNORECASE)
HEX = re.compile(r"(?<![^\W_])[0-9a-f]{8,}(?![^\W_])", re.IGNORECASE)
NUMBERED = re.compile(r"(?<![^\W_])[^\W_]*\d[^\W_]*")  # a word with a digit: 42, 0x1f, 3rd, b64
TOGETHER = re.compile(r"[-+]?#(?:[.,:/+-]#)*")  # 1.5, 10.0.0.1, 2030-01-31T08:00
LONGEST = 500  # of a message without its numbers: two that are the same so far are the same


def fingerprint(task: str, type: str, message: str) -> str:
    """The same for failures that differ in numbers and quoted names alone."""
    source = repr((task, type, folded(message)))  # quoted, so that no text can pass for two
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def folded(message: str) -> str:
    """The message with ``…`` in place of names in quotes and ``#`` in place of numbers."""
    text = QUOTED.sub("…", message)
    for number in (UUID, HEX, NUMBERED):
        text = number.sub("#", text)
    return " ".join(TOGETHER.sub("#", text).split())[:LONGEST]
