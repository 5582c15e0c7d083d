"""Actions on API tokens: create, rotate and revoke. A secret is returned once, by the action that made it.

A token that was created by a token ends with it, unless it was created to outlive it.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import msgspec

from ..errors import Forbidden, IllegalMove, OptionError
from ..model import Page
from ..store.calls import find_document
from ..store.protocol import Store
from .actions import requires
from .credentials import (
    PREFIX,
    TOKEN,
    ApiToken,
    is_expired,
    read_stored,
    secret_hash,
    stored_text,
    stored_tokens,
)
from .grants import CredentialActions
from .requests import CreateTokenRequest, RotateTokenRequest
from .views import NewToken, TokenView, Visibility
from .views.base import PLATFORM

FIRST_S = 86_400.0
FIRST_NAME = "first start"
ROUNDS = 5  # of comparing and writing: its use is being stored at the same time


class TokenActions(CredentialActions):
    """Actions on API tokens."""

    @requires("admin")
    async def tokens(self) -> Page[TokenView]:
        """List API tokens, without their secrets."""
        found = await stored_tokens(await self.operations.store())
        return Page(items=[self._view(one) for one in found if self.operations.sees(one.tenant)])

    @requires("admin", "token.create")
    async def create_token(self, request: CreateTokenRequest) -> NewToken:
        """Create an API token; its text is returned only here."""
        return await self._create(request)

    @requires("admin", "token.create")
    async def create_first_token(self) -> NewToken:
        """Create the token that creates the others: it ends after a day, they do not end with it."""
        request = CreateTokenRequest(role="admin", name=FIRST_NAME, expires_s=FIRST_S)
        return await self._create(request, first=True)

    async def _create(self, request: CreateTokenRequest, *, first: bool = False) -> NewToken:
        actor = self.operations.actor
        if (request.tasks or request.queues) and request.role != "producer":
            raise OptionError(f"tasks and queues limit producers only, and the role is {request.role}")
        tenant, payloads = self.grantable(request.role, request.tenant, request.payloads)
        if request.outlives and actor.ends_at is not None:
            raise Forbidden(f"{actor.name} expires, and cannot create a token that outlives it")
        now, secret = self.services.clock.now(), secrets.token_urlsafe(32)
        is_bound = not (actor.lasting or request.outlives)
        token = ApiToken(
            id=secrets.token_hex(6),
            hash=secret_hash(secret),
            role=request.role,
            name=request.name,
            tenant=tenant,
            payloads=payloads,
            tasks=request.tasks,
            queues=request.queues,
            created_at=now,
            created_by=actor.name,
            creator_tenant=actor.tenant,
            ends_with=_token_id(actor.credential) if is_bound else None,
            first=first,
            expires_at=self._end(now, request.expires_s),
        )
        async with self.operations.audited("token.create", f"token:{token.id}", tenant) as draft:
            store = await self.operations.store()
            await store.put_document(TOKEN, token.id, stored_text(token), 0, now)
            await self._check_maker(store, token)
            draft.after = self._view(token)
            return self._new(token, secret)

    async def _check_maker(self, store: Store, token: ApiToken) -> None:
        """Forbidden, if its maker was revoked meanwhile, or rotated so that it ends sooner."""
        if token.ends_with is None:
            return
        document = await find_document(store, TOKEN, token.ends_with)
        maker = None if document is None else read_stored(document.body, ApiToken)
        if maker is None or _ends_after(token, maker.expires_at):
            await store.delete_document(TOKEN, token.id)
            what = "revoked" if maker is None else "rotated"
            raise Forbidden(f"{self.operations.actor.name} has been {what}")

    @requires("admin", "token.rotate")
    async def rotate_token(self, id: str, request: RotateTokenRequest) -> NewToken:
        """Replace the secret of an API token; the old one is valid for ``overlap_s`` more seconds."""
        async with self.operations.audited("token.rotate", f"token:{id}") as draft:
            store, now = await self.operations.store(), self.services.clock.now()
            document = await find_document(store, TOKEN, id)  # before it is judged: compared when written
            before = await self.own(TOKEN, id, ApiToken)
            if document is None or before is None or is_expired(before, now):
                raise IllegalMove(f"token {id!r} has expired or cannot be read: create another")
            draft.tenant, draft.before = before.tenant, self._view(before)
            self._check_rotation(before)
            secret, expires_s = secrets.token_urlsafe(32), request.expires_s
            token = msgspec.structs.replace(
                before,
                hash=secret_hash(secret),
                previous_hash=before.hash if request.overlap_s else None,
                previous_until=now + timedelta(seconds=request.overlap_s) if request.overlap_s else None,
                rotated_at=now,
                expires_at=before.expires_at if expires_s is None else self._end(now, expires_s),
            )
            if await store.put_document(TOKEN, id, stored_text(token), document.version, now) is None:
                raise IllegalMove(f"token {id!r} is being changed by someone else: try again")
            draft.after = self._view(token)
        await self._shorten_bound(token)
        return self._new(token, secret)

    async def _shorten_bound(self, token: ApiToken) -> None:
        """What a token created expires no later than it: also if its end is set, or moved, afterwards."""
        async for bound in self._bound(token.id):
            if _ends_after(bound, token.expires_at):
                await self._shorten(bound.id, token)

    async def _shorten(self, id: str, maker: ApiToken) -> None:
        store = await self.operations.store()
        async with self.operations.audited("token.shorten", f"token:{id}") as draft:
            for _ in range(ROUNDS):
                document = await find_document(store, TOKEN, id)
                found = None if document is None else read_stored(document.body, ApiToken)
                if document is None or found is None:  # revoked meanwhile
                    draft.is_needed = False
                    return
                after = msgspec.structs.replace(found, expires_at=maker.expires_at)
                draft.tenant, draft.before, draft.after = found.tenant, self._view(found), self._view(after)
                now = self.services.clock.now()
                if await store.put_document(TOKEN, id, stored_text(after), document.version, now) is not None:
                    return
            raise IllegalMove(f"token {id!r} is being changed by someone else: rotate {maker.id!r} again")

    def _check_rotation(self, token: ApiToken) -> None:
        """Who rotates a token holds its secret: no one gets more than they could create."""
        actor = self.operations.actor
        self.grantable(token.role, token.tenant, token.payloads)
        if actor.ends_at is not None and (token.expires_at is None or token.expires_at > actor.ends_at):
            raise Forbidden(f"{actor.name} expires before token {token.id!r}, and cannot rotate it")
        own = _token_id(actor.credential)
        if actor.ends_at is not None and own not in (token.id, token.ends_with):
            raise Forbidden(
                f"{actor.name} expires, and rotates only itself and what it created: when it is revoked, "
                f"token {token.id!r} would stay valid with a secret that it knows"
            )

    @requires("admin", "token.revoke")
    async def revoke_token(self, id: str) -> None:
        """Revoke an API token and those that end with it; requests with them fail from now on."""
        found = await self.own(TOKEN, id, ApiToken)
        await self._revoke(id, found)
        async for bound in self._bound(id):
            await self._revoke(bound.id, bound)

    async def _bound(self, id: str) -> AsyncIterator[ApiToken]:
        """What the token created, and what that created, until there is no more."""
        seen = {id}
        while bound := [one for one in await self._stored() if one.ends_with in seen and one.id not in seen]:
            for one in bound:
                yield one
                seen.add(one.id)

    async def _revoke(self, id: str, found: ApiToken | None) -> None:
        tenant = found.tenant if found is not None else None
        async with self.operations.audited("token.revoke", f"token:{id}", tenant) as draft:
            draft.before = found and self._view(found)
            await (await self.operations.store()).delete_document(TOKEN, id)

    async def _stored(self) -> list[ApiToken]:
        return await stored_tokens(await self.operations.store())

    def _view(self, token: ApiToken) -> TokenView:
        return _token_view(token, self.operations.visibility)

    def _new(self, token: ApiToken, secret: str) -> NewToken:
        view = msgspec.structs.asdict(self._view(token))
        return NewToken(**view, token=f"{PREFIX}_{token.id}_{secret}")

    def _end(self, now: datetime, expires_s: float | None) -> datetime | None:
        """When a token expires: never after the credential that creates it."""
        requested = None if expires_s is None else now + timedelta(seconds=expires_s)
        ends = [end for end in (requested, self.operations.actor.ends_at) if end is not None]
        return min(ends, default=None)


def _token_id(credential: str | None) -> str | None:
    if credential is None or not credential.startswith(f"{TOKEN}:"):
        return None
    return credential.partition(":")[2]


def _ends_after(token: ApiToken, end: datetime | None) -> bool:
    return end is not None and (token.expires_at is None or token.expires_at > end)


def _token_view(token: ApiToken, visibility: Visibility) -> TokenView:
    """A tenant learns that its token was made for it, not by whom."""
    view = TokenView(**{name: getattr(token, name) for name in TokenView.__struct_fields__})
    if visibility.shows_author(token.creator_tenant):
        return view
    return msgspec.structs.replace(view, created_by=PLATFORM, ends_with=None)
