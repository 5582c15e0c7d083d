"""Operations of actors with different roles and tenants."""

from __future__ import annotations

from rota import Rota
from rota.model import Actor, Role
from rota.operate import Operations


def operations_of(app: Rota, role: Role, tenant: str | None = None, payloads: bool = False) -> Operations:
    return app.operations(
        Actor(name=f"{role}-{tenant}", role=role, tenant=tenant, payloads=payloads, via="http")
    )
