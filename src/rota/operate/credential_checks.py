"""Judges tokens for ``rota doctor``: no end, unused, more rights than needed, creator gone. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from ..core.access import reaches
from ..model import Finding
from ..store.protocol import Store
from .credentials import ApiToken, is_expired, stored_tokens, stored_users

CHECK = "credentials"
UNUSED = timedelta(days=90)
JUDGED_AFTER = timedelta(days=7)  # what a token needs shows after some use
MOST_NAMED = 5


async def examine_credentials(store: Store, now: datetime) -> list[Finding]:
    """Findings about tokens that are valid now; one that says so if there is nothing to say."""
    tokens = [token for token in await stored_tokens(store) if not is_expired(token, now)]
    users = {f"user:{user.name}" for user in await stored_users(store)}
    orphaned = [one for one in tokens if one.created_by.startswith("user:") and one.created_by not in users]
    found = [
        *_first(tokens),
        *_about(
            [one for one in tokens if one.expires_at is None],
            "never expire",
            lambda one: f"Give it an end, with a new secret: rota token rotate {one.id} --expires 90d",
        ),
        *_about(
            [one for one in tokens if now - (one.last_used_at or one.created_at) > UNUSED],
            f"have not been used for {UNUSED.days} days",
            lambda one: f"Revoke what is no longer needed: rota token revoke {one.id}",
        ),
        *_about(
            [one for one in tokens if _exceeds(one, now)],
            "have a higher role than they have ever used",
            lambda one: (
                f"{_name(one)} is {one.role}; {one.needed} would do. Create one with that role, "
                f"then: rota token revoke {one.id}"
            ),
        ),
        *_about(
            orphaned,
            "were created by users who are gone",
            lambda one: f"Check who uses it, or: rota token revoke {one.id}",
        ),
    ]
    return found or [Finding(check=CHECK, level="ok", text=f"{len(tokens)} valid tokens checked")]


def _exceeds(token: ApiToken, now: datetime) -> bool:
    return (
        token.needed is not None
        and not reaches(token.needed, token.role)
        and now - token.created_at > JUDGED_AFTER
    )


def _first(tokens: Sequence[ApiToken]) -> list[Finding]:
    remedy = "Create the tokens and users that you need, then: rota token revoke {}"
    return [
        Finding(
            check=CHECK,
            level="warning",
            text=f"the token of the first start is still valid: {_name(one)}",
            remedy=remedy.format(one.id),
        )
        for one in tokens
        if one.first
    ]


def _about(tokens: Sequence[ApiToken], fault: str, remedy: Callable[[ApiToken], str]) -> Sequence[Finding]:
    """One finding for all tokens with the same fault; its remedy is about the first."""
    if not tokens:
        return ()
    names = ", ".join(_name(one) for one in tokens[:MOST_NAMED])
    more = f" and {len(tokens) - MOST_NAMED} more" if len(tokens) > MOST_NAMED else ""
    text = f"{names}{more}: tokens that {fault}"
    return [Finding(check=CHECK, level="warning", text=text, remedy=remedy(tokens[0]))]


def _name(token: ApiToken) -> str:
    return f"{token.name!r} ({token.id})" if token.name else token.id
