"""The base of all views, and what an actor may see in them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ...core.payload.masking import HIDDEN, masked

Timestamp = Annotated[datetime, Meta(tz=True)]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all views."""


class Visibility(View, frozen=True, kw_only=True):
    """What an actor may see: whether it sees payloads, and which fields are secret."""

    payloads: bool
    secrets: tuple[str, ...]

    def of(self, text: str | None) -> Any:
        """A payload or output, decoded, as the actor may see it; invalid JSON stays readable."""
        if text is None:
            return None
        if not self.payloads:
            return HIDDEN
        return self.open(text)

    def open(self, text: str | None) -> Any:
        """An error or progress, decoded: visible without access to payloads, with secrets masked."""
        if text is None:
            return None
        try:
            return masked(msgspec.json.decode(text), self.secrets)
        except (msgspec.DecodeError, RecursionError):
            return {"unreadable": text[:1000]}
