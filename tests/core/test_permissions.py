"""Who may do what, as a table."""

from __future__ import annotations

import pytest

from rota.core.access import PERMISSIONS, ROLES, may, require
from rota.errors import Forbidden
from rota.model import Actor, Role

TABLE: dict[tuple[Role, str | None], set[str]] = {
    ("producer", "acme"): {"me", "enqueue"},
    ("viewer", "acme"): {"me", "read"},
    ("operator", "acme"): {"me", "enqueue", "read", "operate", "audit"},
    ("admin", "acme"): {"me", "enqueue", "read", "operate", "audit", "admin"},
    ("producer", None): {"me", "enqueue"},
    ("viewer", None): {"me", "read", "read.shared"},
    ("operator", None): {"me", "enqueue", "read", "read.shared", "operate", "operate.shared", "audit"},
    ("admin", None): set(PERMISSIONS),
}


@pytest.mark.parametrize(("role", "tenant"), TABLE)
def test_each_role_reaches_exactly_its_permissions(role: Role, tenant: str | None) -> None:
    actor = Actor(name="ann", role=role, tenant=tenant)
    assert {name for name in PERMISSIONS if may(actor, name)} == TABLE[role, tenant]


def test_the_table_covers_every_role() -> None:
    assert {role for role, _ in TABLE} == set(ROLES)


@pytest.mark.parametrize(("role", "tenant"), TABLE)
def test_what_is_not_allowed_is_refused_with_what_is_missing(role: Role, tenant: str | None) -> None:
    actor = Actor(name="ann", role=role, tenant=tenant)
    for name in PERMISSIONS:
        if name in TABLE[role, tenant]:
            require(actor, name)
        else:
            with pytest.raises(Forbidden, match=r"needs the role|concerns all tenants"):
                require(actor, name)
