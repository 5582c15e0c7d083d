"""Actions on users who sign in with a password."""

from __future__ import annotations

import asyncio
import secrets

from ..core.jobs.options import name_text
from ..errors import AlreadyRegistered, Forbidden, IllegalMove, OptionError
from ..model import Page
from ..store.calls import find_document
from .actions import requires
from .credentials import USER, StoredUser, password_hash, read_stored, stored_text, stored_users
from .grants import CredentialActions
from .requests import SHORTEST_PASSWORD, PutUserRequest
from .views import UserView


class UserActions(CredentialActions):
    """Actions on users."""

    @requires("admin")
    async def users(self) -> Page[UserView]:
        """List users who sign in with a password."""
        found = await stored_users(await self.operations.store())
        return Page(items=[_view(one) for one in found if self.operations.sees(one.tenant)])

    @requires("admin", "user.put")
    async def put_user(self, name: str, request: PutUserRequest) -> UserView:
        """Create a user or change its password; this ends the user's sessions."""
        name_text("user", name)
        if len(request.password) < SHORTEST_PASSWORD:
            raise OptionError(f"the password is too short: at least {SHORTEST_PASSWORD} characters")
        if request.role == "producer":
            raise OptionError("a producer may only enqueue, and cannot sign in: create a token instead")
        tenant, payloads = self.grantable(request.role, request.tenant, request.payloads)
        if self.operations.actor.ends_at is not None:
            raise Forbidden(
                f"{self.operations.actor.name} expires, and a user does not: use a token without an end"
            )
        store, now = await self.operations.store(), self.services.clock.now()
        document = await find_document(store, USER, name)
        before = None if document is None else read_stored(document.body, StoredUser)
        if before is not None and not self.operations.sees(before.tenant):
            raise Forbidden(f"the name {name!r} is taken: choose another")
        salt = secrets.token_hex(16)
        user = StoredUser(
            name=name,
            salt=salt,
            hash=await asyncio.to_thread(password_hash, request.password, salt),
            role=request.role,
            tenant=tenant,
            payloads=payloads,
            created_at=now,
        )
        async with self.operations.audited("user.put", f"user:{name}", tenant) as draft:
            expected = 0 if document is None or request.new else document.version
            if await store.put_document(USER, name, stored_text(user), expected, now) is None:
                if request.new:
                    raise AlreadyRegistered(
                        f"there is a user {name!r} already: change that one instead, or choose another name"
                    )
                raise IllegalMove(f"user {name!r} is being changed by someone else: try again")
            draft.before, draft.after = before and _view(before), _view(user)
            return _view(user)

    @requires("admin", "user.delete")
    async def delete_user(self, name: str) -> None:
        """Delete a user."""
        found = await self.own(USER, name, StoredUser)
        async with self.operations.audited(
            "user.delete", f"user:{name}", (found and found.tenant) or None
        ) as draft:
            draft.before = found and _view(found)
            await (await self.operations.store()).delete_document(USER, name)


def _view(user: StoredUser) -> UserView:
    return UserView(**{name: getattr(user, name) for name in UserView.__struct_fields__})
