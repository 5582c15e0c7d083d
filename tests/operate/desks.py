"""Desks of many kinds of people."""

from __future__ import annotations

from rota import Rota
from rota.model import Actor, Role
from rota.operate import Desk


def desk_of(app: Rota, role: Role, tenant: str | None = None, payloads: bool = False) -> Desk:
    return app.desk(Actor(name=f"{role}-{tenant}", role=role, tenant=tenant, payloads=payloads, via="http"))
