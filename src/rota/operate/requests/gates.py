"""Requests of the actions on gates."""

from __future__ import annotations

from ...model import Scope
from .fields import ActionRequest, Name, Seconds, Text, Timestamp


class PauseRequest(ActionRequest, frozen=True, kw_only=True):
    """Why to pause, and until when; without an end, until resumed."""

    reason: Text = ""
    until: Timestamp | None = None
    for_s: Seconds | None = None  # instead of until


class GateRequest(PauseRequest, frozen=True, kw_only=True):
    """What to pause, why, and until when."""

    scope: Scope
    name: Name | None = None
    tenant: Name | None = None  # of a schedule
