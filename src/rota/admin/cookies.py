"""Cookies of the dashboard: which, when, and under what name. Holds no session itself.

Browsers send a cookie to every port of a host, so a name has its server's port: two servers on one machine
do not overwrite each other's. What another program receives that way is of no use to it: a session also needs
the secret that only the page that signed in has (``Session.csrf``).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from ..operate.sign_in_limits import DEVICE_LASTS
from .requests import LOOPBACK_NAMES, Origin

SECURE_COOKIE, LOCAL_COOKIE = "__Host-rota", "rota_session"


def device_of(request: Request, origin: Origin) -> str | None:
    """What a browser that has signed in before shows."""
    return request.cookies.get(_device_name(origin), "")[:100] or None


def set_device(response: Response, origin: Origin, device: str) -> None:
    response.set_cookie(
        _device_name(origin), device, path="/", secure=origin.is_secure, httponly=True, samesite="strict",
        max_age=int(DEVICE_LASTS.total_seconds()),
    )  # fmt: skip


def _device_name(origin: Origin) -> str:
    return f"{cookie_name(origin)}_device"


def allows_cookie(origin: Origin) -> bool:
    """A session cookie is sent over TLS, or never leaves the machine."""
    return origin.is_secure or origin.name in LOOPBACK_NAMES


def cookie_name(origin: Origin) -> str:
    name = SECURE_COOKIE if origin.is_secure else LOCAL_COOKIE
    try:
        port = urlsplit(f"//{origin.host}").port
    except ValueError:
        port = None
    return name if port is None else f"{name}_{port}"


def set_cookie(response: Response, origin: Origin, id: str) -> None:
    response.set_cookie(
        cookie_name(origin), id, path="/", secure=origin.is_secure, httponly=True, samesite="strict"
    )


def delete_cookie(response: Response, origin: Origin) -> None:
    response.delete_cookie(
        cookie_name(origin), path="/", secure=origin.is_secure, httponly=True, samesite="strict"
    )
