"""What the actions on tokens and on users share: an actor reaches its own, and grants no more than it has."""

from __future__ import annotations

from typing import TypeVar

from ..core.access import reaches
from ..errors import Forbidden, NotFound
from ..model import Role
from ..store.calls import find_document
from .actions import ActionGroup
from .credentials import ApiToken, StoredUser, read_stored

Credential = TypeVar("Credential", ApiToken, StoredUser)
SEES_PAYLOADS = ("operator", "admin")  # unless it is denied


class CredentialActions(ActionGroup):
    """Base of the actions on credentials."""

    subject = "access"

    async def own(self, kind: str, key: str, form: type[Credential]) -> Credential | None:
        """The credential, if the actor may see it; None: it exists, but cannot be read."""
        document = await find_document(await self.operations.store(), kind, key)
        found = None if document is None else read_stored(document.body, form)
        if document is None or (found is not None and not self.operations.sees(found.tenant)):
            raise NotFound(f"there is no {kind} {key!r}")
        return found

    def grantable(self, role: Role, tenant: str | None, payloads: bool | None) -> tuple[str | None, bool]:
        """Tenant and payload access of a new credential: no actor grants more than it has."""
        actor = self.operations.actor
        if not reaches(actor.role, role):
            raise Forbidden(
                f"{actor.name} is {actor.role} and cannot create a credential with the role {role}"
            )
        if payloads and not actor.payloads:
            raise Forbidden(f"{actor.name} cannot grant payload access without having it")
        usual = role in SEES_PAYLOADS and actor.payloads
        return self.operations.tenant(tenant), usual if payloads is None else payloads
