"""Views of API tokens, users and the current actor; never a stored secret."""

from __future__ import annotations

from .base import Timestamp, View


class TokenView(View, frozen=True, kw_only=True):
    """An API token, without its secret."""

    id: str
    name: str
    role: str
    tenant: str | None
    payloads: bool
    created_at: Timestamp
    created_by: str
    expires_at: Timestamp | None
    last_used_at: Timestamp | None


class NewToken(TokenView, frozen=True, kw_only=True):
    """An API token that was just created."""

    token: str  # shown only once


class UserView(View, frozen=True, kw_only=True):
    """A user who signs in with a password."""

    name: str
    role: str
    tenant: str | None
    payloads: bool
    created_at: Timestamp


class CurrentActor(View, frozen=True, kw_only=True):
    """The current actor and its permissions."""

    name: str
    role: str
    tenant: str | None
    payloads: bool
    permissions: tuple[str, ...]
    version: str
    store: str | None  # None: not visible to this actor
    now: Timestamp
