"""The dashboard and API: an ASGI application.

Translates requests into admin actions and their results into responses. Decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..app import Rota
    from .application import Admin


def app(
    rota: Rota, *, prefix: str = "", allowed_hosts: Sequence[str] = (), behind_proxy: bool = False
) -> Admin:
    """The ASGI application for one Rota: serve it, or mount it in an application of your own.

    ``allowed_hosts`` are the host names to accept, besides those of loopback. ``behind_proxy`` trusts
    X-Forwarded-Proto and X-Forwarded-For: set it only if your own proxy writes them.
    """
    from .application import Admin  # the web framework is needed only here

    return Admin(rota, prefix=prefix, allowed_hosts=allowed_hosts, behind_proxy=behind_proxy)
