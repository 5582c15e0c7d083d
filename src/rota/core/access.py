"""Permissions: which role may do what. Pure: one table, and the checks against it.

A permission has a least role. A producer may only enqueue, and reads nothing. A permission that concerns
what all tenants share (queues, workers, the whole installation) is denied to an actor that is limited to one
tenant.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import Forbidden
from ..model import Actor, Role

ROLES: tuple[Role, ...] = ("producer", "viewer", "operator", "admin")


class Permission(NamedTuple):
    """The least role that an action needs."""

    role: Role
    shared: bool = False  # concerns what all tenants share
    producers: bool = False  # producers too, whatever the least role


PERMISSIONS: dict[str, Permission] = {
    "me": Permission("producer"),
    "enqueue": Permission("operator", producers=True),
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
    return _has_role(actor, rule) and not (rule.shared and actor.tenant is not None)


def least_role(permission: str) -> Role:
    """The least role that has the permission."""
    rule = PERMISSIONS[permission]
    return "producer" if rule.producers else rule.role


def require(actor: Actor, permission: str) -> None:
    """Forbidden, with the permission that is missing, unless the actor has it."""
    rule = PERMISSIONS[permission]
    if not _has_role(actor, rule):
        raise Forbidden(f"this needs the role {rule.role}, and {actor.name} is {actor.role}")
    if rule.shared and actor.tenant is not None:
        raise Forbidden(
            f"this concerns all tenants, and {actor.name} belongs to tenant {actor.tenant!r}: "
            "use a token without a tenant"
        )


def require_scope(actor: Actor, task: str, queue: str) -> None:
    """Forbidden, unless the actor may enqueue jobs of this task into this queue."""
    for what, name, allowed in (("task", task, actor.tasks), ("queue", queue, actor.queues)):
        if allowed and name not in allowed:
            raise Forbidden(f"{actor.name} may not enqueue to {what} {name!r}: only to {', '.join(allowed)}")


def _has_role(actor: Actor, rule: Permission) -> bool:
    return reaches(actor.role, rule.role) or (rule.producers and actor.role == "producer")
