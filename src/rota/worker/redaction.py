"""Redacts secret payload values from errors, logs, progress and audit entries.

Reads the payload only when there is something to redact, which most jobs never have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..core.payload.masking import MASK, masked, secrets_in, struck


class Redactor:
    """Knows the secrets of one payload. Never changes what is stored as the payload itself."""

    def __init__(self, payload_json: str, fields: Sequence[str]) -> None:
        self._fields = fields
        self._secrets = _spellings(_secrets(payload_json, fields)) if fields else ()

    @property
    def has_secrets(self) -> bool:
        return bool(self._secrets)

    def text(self, text: str) -> str:
        """The text, with every secret struck out."""
        return struck(text, self._secrets) if self._secrets else text

    def value(self, value: Any) -> Any:
        """A plain JSON value, without secret fields, and with every secret struck out of the others."""
        return self._within(masked(value, self._fields))

    def _within(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(name): self._within(one) for name, one in value.items()}
            case list():
                return [self._within(one) for one in value]
            case _:
                return MASK if str(value) in self._secrets else value


def _secrets(payload_json: str, fields: Sequence[str]) -> list[str]:
    try:
        return secrets_in(msgspec.json.decode(payload_json), fields)
    except (msgspec.DecodeError, RecursionError):  # edited by hand: it names no fields either
        return []


def _spellings(secrets: Sequence[str]) -> tuple[str, ...]:
    """As they are, and as ``repr`` and JSON write them, which is how most messages contain them."""
    written = [(one, repr(one)[1:-1], msgspec.json.encode(one).decode()[1:-1]) for one in secrets]
    return tuple(dict.fromkeys(spelling for spellings in written for spelling in spellings))
