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
    tasks: tuple[str, ...]  # of a producer; empty: all
    queues: tuple[str, ...]
    created_at: Timestamp
    created_by: str
    ends_with: str | None  # id of the token that it is revoked with
    expires_at: Timestamp | None
    rotated_at: Timestamp | None
    previous_until: Timestamp | None  # the secret before the last rotation is valid until then
    last_used_at: Timestamp | None  # precise to a minute
    last_used_from: str | None  # address


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
    password_at: Timestamp | None  # when the password was changed since
    must_change: bool  # the password, at the next sign-in


class OpenSession(View, frozen=True, kw_only=True):
    """A session of the dashboard."""

    id: str
    name: str  # of the account
    role: str
    tenant: str | None
    address: str | None  # at sign-in
    agent: str | None  # the browser, as it calls itself
    created_at: Timestamp
    seen_at: Timestamp  # precise to a minute
    ends_at: Timestamp  # unless it is used until then
    current: bool  # it sends this request


class EndedSessions(View, frozen=True, kw_only=True):
    """How many sessions have ended."""

    count: int


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
