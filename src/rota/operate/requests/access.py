"""Requests of the actions on API tokens and users."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ...model import Role
from .fields import SHORTEST_PASSWORD, ActionRequest, Name, Names, Seconds, Text


class CreateTokenRequest(ActionRequest, frozen=True, kw_only=True):
    """The API token to create."""

    role: Role
    name: Text = ""
    tenant: Name | None = None
    expires_s: Seconds | None = None  # None: never
    payloads: bool | None = None  # None: operators and admins see payloads, others do not
    tasks: Names = ()  # of a producer: the tasks that it may enqueue; empty: all
    queues: Names = ()
    outlives: bool = False  # the token that creates it, if one does: otherwise it is revoked with that one


class RotateTokenRequest(ActionRequest, frozen=True, kw_only=True):
    """A new secret for an API token."""

    overlap_s: Annotated[float, Meta(ge=0, le=7 * 86_400)] = (
        3600.0  # the old one is valid so long; 0: ends now
    )
    expires_s: Seconds | None = None  # None: its end stays


class PutUserRequest(ActionRequest, frozen=True, kw_only=True):
    """A user who signs in with a password."""

    password: Annotated[str, Meta(min_length=SHORTEST_PASSWORD, max_length=1000)]
    role: Role
    tenant: Name | None = None
    payloads: bool | None = None
    new: bool = False  # fail if the name is taken
    must_change: bool = False  # the user chooses another password at the next sign-in


class SetPasswordRequest(ActionRequest, frozen=True, kw_only=True):
    """A new password for a user."""

    password: Annotated[str, Meta(min_length=SHORTEST_PASSWORD, max_length=1000)]
    must_change: bool = False


class EndSessionsRequest(ActionRequest, frozen=True, kw_only=True):
    """Which sessions to end: your own, unless an account is named."""

    name: Text | None = None  # of the account, as in the list: ``user:anna``
    keep_current: bool = False  # not the one that sends this request
