"""Types of request fields with their bounds, and the base of all requests."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ...core import password_rules

MOST = 200  # rows in a page
SHORTEST_PASSWORD = password_rules.SHORTEST
Limit = Annotated[int, Meta(ge=1, le=MOST)]
Text = Annotated[str, Meta(max_length=200)]
Long = Annotated[str, Meta(max_length=2000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Cursor = Annotated[str, Meta(max_length=1000)]
Names = Annotated[tuple[Name, ...], Meta(max_length=50)]
Ids = Annotated[tuple[Text, ...], Meta(min_length=1, max_length=1000)]
Priority = Annotated[int, Meta(ge=-(2**31 - 2), le=2**31 - 2)]
Seconds = Annotated[float, Meta(ge=0, le=10 * 365 * 86_400)]
Attempts = Annotated[int, Meta(ge=1, le=100)]
Object = dict[str, Any]
Timestamp = Annotated[datetime, Meta(tz=True)]


class ActionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all requests: an unknown field is an error."""


class EmptyRequest(ActionRequest, frozen=True, kw_only=True):
    """The request of an action that needs no more than its path."""
