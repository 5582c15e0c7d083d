"""Requests of the actions on API tokens and users."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ...model import Role
from .fields import SHORTEST_PASSWORD, ActionRequest, Name, Seconds, Text


class CreateTokenRequest(ActionRequest, frozen=True, kw_only=True):
    """The API token to create."""

    role: Role
    name: Text = ""
    tenant: Name | None = None
    expires_s: Seconds | None = None  # None: never
    payloads: bool | None = None  # None: operators and admins see payloads, viewers do not


class PutUserRequest(ActionRequest, frozen=True, kw_only=True):
    """A user who signs in with a password."""

    password: Annotated[str, Meta(min_length=SHORTEST_PASSWORD, max_length=1000)]
    role: Role
    tenant: Name | None = None
    payloads: bool | None = None
    new: bool = False  # fail if the name is taken
