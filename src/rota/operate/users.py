"""Actions on users who sign in with a password."""

from __future__ import annotations

import msgspec

from ..core.jobs.options import name_text
from ..core.password_rules import weakness
from ..errors import AlreadyRegistered, Forbidden, IllegalMove, OptionError
from ..model import Page
from ..runtime.clock import Clock
from ..store.calls import find_document
from ..store.protocol import Store
from . import passwords
from .actions import requires
from .credentials import USER, StoredUser, read_stored, stored_text, stored_users
from .grants import CredentialActions
from .requests import PutUserRequest, SetPasswordRequest
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
        check_password(request.password, name)
        if request.role == "producer":
            raise OptionError("a producer may only enqueue, and cannot sign in: create a token instead")
        tenant, payloads = self.grantable(request.role, request.tenant, request.payloads)
        self._check_lasting()
        store, now = await self.operations.store(), self.services.clock.now()
        document = await find_document(store, USER, name)
        before = None if document is None else read_stored(document.body, StoredUser)
        self._check_name(name, before)
        user = StoredUser(
            name=name,
            **(await passwords.new_hash(request.password))._asdict(),
            role=request.role,
            tenant=tenant,
            payloads=payloads,
            created_at=now,
            must_change=request.must_change,
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

    def _check_name(self, name: str, before: StoredUser | None) -> None:
        """A tenant's admin creates names of its tenant's own, so that none says whether others have it."""
        own = self.operations.actor.tenant
        if own is None or (before is not None and before.tenant == own):
            return
        if before is not None or not name.endswith(f"@{own}"):
            raise OptionError(
                f"a user that {self.operations.actor.name} creates is named NAME@{own}: "
                f"choose {name.partition('@')[0]}@{own}, or another name before the @"
            )

    @requires("admin", "user.password")
    async def set_password(self, name: str, request: SetPasswordRequest) -> UserView:
        """Change the password of a user, and nothing else; this ends the user's sessions."""
        async with self.operations.audited("user.password", f"user:{name}") as draft:
            found = await self.own(USER, name, StoredUser)
            if found is None:
                raise IllegalMove(f"user {name!r} cannot be read: create it again")
            draft.tenant = found.tenant
            self.grantable(found.role, found.tenant, found.payloads)
            self._check_lasting()
            store, clock = await self.operations.store(), self.services.clock
            return _view(await new_password(store, clock, found, request.password, request.must_change))

    def _check_lasting(self) -> None:
        """Who sets a password can sign in with it later."""
        actor = self.operations.actor
        if actor.ends_at is not None:
            raise Forbidden(f"{actor.name} expires, and a user does not: use a token without an end")

    @requires("admin", "user.delete")
    async def delete_user(self, name: str) -> None:
        """Delete a user."""
        found = await self.own(USER, name, StoredUser)
        async with self.operations.audited(
            "user.delete", f"user:{name}", (found and found.tenant) or None
        ) as draft:
            draft.before = found and _view(found)
            await (await self.operations.store()).delete_document(USER, name)


def check_password(password: str, name: str) -> None:
    """OptionError, if it is too easy to guess."""
    if (reason := weakness(password, name)) is not None:
        raise OptionError(f"the password {reason}")


async def new_password(
    store: Store, clock: Clock, user: StoredUser, password: str, must_change: bool = False
) -> StoredUser:
    """Replace the password. IllegalMove if the user is being changed by someone else."""
    check_password(password, user.name)
    hash = (await passwords.new_hash(password))._asdict()
    document = await find_document(store, USER, user.name)
    current = None if document is None else read_stored(document.body, StoredUser)
    now = clock.now()
    if document is not None and current is not None and current.changed_at == user.changed_at:
        changed = msgspec.structs.replace(current, **hash, password_at=now, must_change=must_change)
        if await store.put_document(USER, user.name, stored_text(changed), document.version, now) is not None:
            return changed
    raise IllegalMove(f"user {user.name!r} is being changed by someone else: try again")


def _view(user: StoredUser) -> UserView:
    return UserView(**{name: getattr(user, name) for name in UserView.__struct_fields__})
