"""The first credential: an admin token, created once while there is none. Never creates a second."""

from __future__ import annotations

from ..app import Rota
from ..model import Actor
from ..operate import access
from ..operate.requests import CreateTokenRequest

FIRST = Actor(name="first start", role="admin", payloads=True, via="system")


async def first_token(rota: Rota) -> str | None:
    """A new admin token if there is no credential at all; None otherwise."""
    if await access.has_any(await rota.stores.get()):
        return None
    created = await rota.operations(FIRST).access.create_token(
        CreateTokenRequest(role="admin", name="first start")
    )
    return created.token
