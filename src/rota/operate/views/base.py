"""The base of all views, and what an actor may see in them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ...core.payload.masking import HIDDEN, masked

PLATFORM = "an operator for all tenants"  # in place of its name, for those who are limited to one
Timestamp = Annotated[datetime, Meta(tz=True)]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all views."""


class Visibility(View, frozen=True, kw_only=True):
    """What an actor may see: whether it sees payloads, and which fields are secret.

    Only here is decided what may quote a payload: outputs, errors but for their type, log lines, messages.
    """

    payloads: bool
    secrets: tuple[str, ...]
    tenant: str | None = None  # the actor is limited to it; None: it sees all tenants

    def shows_author(self, tenant: str | None) -> bool:
        """Whether it may know who acts for this tenant; None: who acts for all of them."""
        return self.tenant is None or self.tenant == tenant

    def of(self, text: str | None) -> Any:
        """A payload or output, decoded, as the actor may see it; invalid JSON stays readable."""
        if text is None:
            return None
        return self._decoded(text) if self.payloads else HIDDEN

    def error(self, text: str | None) -> Any:
        """An error. Without access to payloads: its type, and when it happened."""
        if text is None or self.payloads:
            return self.of(text)
        found = self._decoded(text)
        shown = {name: found[name] for name in ERROR_FACTS if name in found} if _is_error(found) else {}
        return shown | {"message": HIDDEN}

    def progress(self, text: str | None) -> Any:
        """Progress. Without access to payloads: only how far it is."""
        if text is None or self.payloads:
            return self.of(text)
        found = self._decoded(text)
        percent = found.get("percent") if isinstance(found, dict) else None
        return {"percent": percent if isinstance(percent, (int, float)) else None, "message": ""}

    def message(self, text: str | None) -> str | None:
        """A message that a task or an error may have written."""
        return text if text is None or self.payloads else HIDDEN

    def value(self, value: Any) -> Any:
        """A decoded payload, output or part of one."""
        if value is None:
            return None
        return masked(value, self.secrets) if self.payloads else HIDDEN

    def snapshot(self, text: str | None) -> Any:
        """What an audit entry keeps of an object; its payload only for actors who see payloads."""
        found = None if text is None else self._decoded(text)
        if self.payloads or not isinstance(found, dict) or "payload" not in found:
            return found
        return {**found, "payload": HIDDEN}

    def _decoded(self, text: str) -> Any:
        try:
            return masked(msgspec.json.decode(text), self.secrets)
        except (msgspec.DecodeError, RecursionError):
            return {"unreadable": text[:1000]}


ERROR_FACTS = ("type", "at", "attempt")


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type", ""), str)
