"""Secrets that stand in payloads, outputs and texts: never shown, never stored in an error or a log. Pure.

A field is secret by its name. Names are compared without regard to case and to how their words are
joined: ``apiKey``, ``API-KEY`` and ``api_key`` are one name. ``*`` in a pattern stands for any text;
``*_`` at its beginning stands for any whole words or none: ``*_pin`` is ``pin`` and ``cardPin``, and
never ``shipping``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

MASK = "•••"
HIDDEN = "(hidden: needs the permission to see payloads)"
SHORTEST = 4  # a shorter one is struck out as a whole word only, or half of a sentence would go with it
MOST_DEEP = 100


def is_secret(name: str, patterns: Sequence[str]) -> bool:
    return bool(patterns) and _compiled(tuple(patterns)).fullmatch(_words(name)) is not None


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


_JOINTS = re.compile(r"(?<=[^\W_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\W_]+")


def _words(name: str) -> str:
    """The words of a name, joined by ``_``: ``sessionID``, ``Session-Id`` and ``session.id`` are alike."""
    return _JOINTS.sub("_", name).strip("_").lower()


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(_expression, patterns)), re.DOTALL)


def _expression(pattern: str) -> str:
    """A joint in the name may stand between any two characters: ``apikey`` finds ``api_key``."""
    whole_words = re.match(r"\*[-_]", pattern)
    rest = pattern[2:] if whole_words else pattern
    parts = [".*" if one == "*" else f"{re.escape(one)}_?" for one in re.sub(r"[^\w*]|_", "", rest).lower()]
    return ("(?:.*_)?" if whole_words else "") + "".join(parts)
