"""The first credential: an admin token that ends after a day, created once while there is none.

Created only to be shown on a terminal: a log file must not contain it. Never creates a second one.
"""

from __future__ import annotations

from ..app import Rota
from ..model import Actor
from ..operate.credentials import has_any

FIRST = Actor(name="first start", role="admin", payloads=True, via="system")


async def lacks_credentials(rota: Rota) -> bool:
    """Whether no one can sign in yet."""
    return not await has_any(await rota.stores.get())


async def first_token(rota: Rota) -> str | None:
    """A new admin token if there is no credential at all; None otherwise."""
    if not await lacks_credentials(rota):
        return None
    return (await rota.operations(FIRST).access.create_first_token()).token
