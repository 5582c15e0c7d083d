"""Two questions about the way to the server: do wake-ups arrive, and can anybody listen in.

Owns the probe and the reading of ``sslmode``. Must never show a password.
"""

from __future__ import annotations

import asyncio
import secrets
from ipaddress import ip_address

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from ...errors import StoreError
from ...model import Finding
from .connections import Connections, connect
from .driver_errors import translated
from .url import PostgresUrl

PROBE_WITHIN_S = 2.0
DIRECT = "add ?listen=URL with a direct address to the store's URL, or ?listen=off (docs/howto/poolers.md)"


async def wake_ups(connections: Connections, address: PostgresUrl) -> Finding:
    if address.listen is None:
        return Finding(check="wake-ups", level="ok", text="turned off by ?listen=off: workers poll")
    try:
        took = await _round_trip(connections, address.listen, address.shown)
    except StoreError as error:
        text = f"the address to listen on cannot be used: {error}"
        return Finding(check="wake-ups", level="problem", text=text, remedy=DIRECT)
    if took is None:
        text = f"no notification came back within {PROBE_WITHIN_S:g} s, as behind a pooler: workers poll"
        return Finding(check="wake-ups", level="warning", text=text, remedy=DIRECT)
    return Finding(check="wake-ups", level="ok", text=f"a notification came back within {took * 1000:.0f} ms")


async def _round_trip(connections: Connections, listen: str, shown: str) -> float | None:
    """How long a notification took, heard on a connection of its own; None: it was not heard."""
    channel = f"rota_probe_{secrets.token_hex(8)}"
    loop = asyncio.get_running_loop()
    connection = await connect(listen, shown)
    try:
        await connection.execute(f"LISTEN {channel}".encode())
        began = loop.time()
        await connections.rows("SELECT pg_notify(%s, '')", (channel,))
        heard = [notice async for notice in connection.notifies(timeout=PROBE_WITHIN_S, stop_after=1)]
        return loop.time() - began if heard else None
    except psycopg.Error as error:
        raise translated(error, shown) from error
    finally:
        await connection.close()


def encryption(address: PostgresUrl) -> list[Finding]:
    found = []
    for conninfo in dict.fromkeys(one for one in (address.conninfo, address.listen) if one):
        given = {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
        settings = _defaults() | given
        hosts = (given.get("hostaddr") or settings.get("host", "")).split(",")
        away = [host for host in hosts if not _is_local(host)]
        mode = settings.get("sslmode", "prefer")
        if away and mode != "verify-full":
            text = f"{', '.join(away)} is not this machine, and sslmode is {mode}: the server is not verified"
            remedy = "add sslmode=verify-full&sslrootcert=… to the store's URL"
            found.append(Finding(check="encryption", level="warning", text=text, remedy=remedy))
    return found or [
        Finding(check="encryption", level="ok", text="local, or verified by sslmode=verify-full")
    ]


def _defaults() -> dict[str, str]:
    """What libpq takes from its environment."""
    options = pq.Conninfo.get_defaults()
    return {one.keyword.decode(): one.val.decode() for one in options if one.val is not None}


def _is_local(host: str) -> bool:
    if host in ("", "localhost") or host.startswith(("/", "@")):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
