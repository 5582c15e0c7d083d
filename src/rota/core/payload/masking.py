"""Secrets that stand in payloads, outputs and texts: never shown, never stored in an error or a log. Pure.

A field is secret by its name. Names are compared without regard to case, ``-`` and ``_``; a pattern
may have ``*``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Any

MASK = "•••"
HIDDEN = "(hidden: needs the permission to see payloads)"
SHORTEST = 4  # a shorter one is struck out as a whole word only, or half of a sentence would go with it
MOST_DEEP = 100


def is_secret(name: str, patterns: Sequence[str]) -> bool:
    return bool(patterns) and _compiled(tuple(patterns)).match(_plain(name)) is not None


def masked(value: Any, patterns: Sequence[str], depth: int = 0) -> Any:
    """The value with a mask in place of every secret field."""
    if depth > MOST_DEEP:
        return MASK
    if isinstance(value, dict):
        return {
            name: MASK
            if is_secret(str(name), patterns) and one is not None
            else masked(one, patterns, depth + 1)
            for name, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [masked(one, patterns, depth + 1) for one in value]
    return value


def secrets_in(value: Any, patterns: Sequence[str], depth: int = 0) -> list[str]:
    """The texts of the secret fields: what must not appear in an error or a log line."""
    if depth > MOST_DEEP:
        return []
    if isinstance(value, dict):
        found: list[str] = []
        for name, one in value.items():
            found += texts(one) if is_secret(str(name), patterns) else secrets_in(one, patterns, depth + 1)
        return found
    if isinstance(value, (list, tuple)):
        return [text for one in value for text in secrets_in(one, patterns, depth + 1)]
    return []


def texts(value: Any, depth: int = 0) -> list[str]:
    """Every text and number inside a secret value."""
    if depth > MOST_DEEP or value is None or isinstance(value, bool):
        return []
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one, depth + 1)]
    if isinstance(value, (list, tuple)):
        return [text for one in value for text in texts(one, depth + 1)]
    return [text] if (text := str(value)) else []


def struck(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret struck out, the longest first: one may stand inside another."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, MASK)
        else:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
    return text


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(_plain(pattern)) for pattern in patterns))
