"""Permissions: which role may do what. Pure: one table, and the checks against it.

A permission has a least role. One that concerns what all tenants share (queues, workers, the whole
installation) is denied to an actor that is limited to one tenant.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import Forbidden
from ..model import Actor, Role

ROLES: tuple[Role, ...] = ("viewer", "operator", "admin")


class Permission(NamedTuple):
    """The least role that an action needs."""

    role: Role
    shared: bool = False  # concerns what all tenants share


PERMISSIONS: dict[str, Permission] = {
    "read": Permission("viewer"),
    "operate": Permission("operator"),
    "audit": Permission("operator"),
    "admin": Permission("admin"),
    "read.shared": Permission("viewer", shared=True),
    "operate.shared": Permission("operator", shared=True),
    "admin.shared": Permission("admin", shared=True),
}


def reaches(role: Role, least: Role) -> bool:
    return ROLES.index(role) >= ROLES.index(least)


def may(actor: Actor, permission: str) -> bool:
    rule = PERMISSIONS[permission]
    return reaches(actor.role, rule.role) and not (rule.shared and actor.tenant is not None)


def require(actor: Actor, permission: str) -> None:
    """Forbidden, with the permission that is missing, unless the actor has it."""
    rule = PERMISSIONS[permission]
    if not reaches(actor.role, rule.role):
        raise Forbidden(f"this needs the role {rule.role}, and {actor.name} is {actor.role}")
    if rule.shared and actor.tenant is not None:
        raise Forbidden(
            f"this concerns all tenants, and {actor.name} belongs to tenant {actor.tenant!r}: "
            "use a token without a tenant"
        )
