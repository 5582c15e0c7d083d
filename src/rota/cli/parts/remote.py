"""The desk behind a server: the same rooms and actions as ``Desk``, each one an HTTP request.

Everything is read off the table of routes, so an action that is added there is here too. The token
goes into one header and nowhere else: not into an error, a log or the arguments of a process.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from ...admin.routes import PREFIX, ROOMS, ROUTES, Route
from ...errors import ConfigError
from ...operate.requests import ActionRequest
from .api_errors import error_of, not_a_rota_server
from .http_client import ApiConnection

TOKEN_FILE = "ROTA_TOKEN_FILE"


def read_token() -> str:
    """The token from the file that the environment names; or an error that tells how to give one."""
    name = os.environ.get(TOKEN_FILE)
    if not name:
        raise ConfigError(
            "a server needs a token: set ROTA_TOKEN, or ROTA_TOKEN_FILE to a file that holds it; "
            "rota token create makes one"
        )
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"{TOKEN_FILE}={name}: cannot be read: {why}") from None


class RemoteOperations:
    """Ask a server instead of the store. What the caller may do is the server's to say."""

    app = None  # of the server's app nothing is known here

    def __init__(self, url: str, token: str, ca_file: str | None = None) -> None:
        self.link = ApiConnection(url, token, ca_file)
        for name in ROOMS:
            setattr(self, name, RemoteActionGroup(self.link, name))

    async def close(self) -> None:
        self.link.close()


class RemoteActionGroup:
    """A room of the desk: one method for each of its routes."""

    def __init__(self, link: ApiConnection, name: str) -> None:
        for route in ROUTES:
            room, _, action = route.action.partition(".")
            if room == name:
                setattr(self, action, _action(link, route))


def _action(link: ApiConnection, route: Route) -> Callable[..., Awaitable[Any]]:
    own = inspect.signature(route.act)
    signature = own.replace(parameters=list(own.parameters.values())[1:])  # without the room

    async def act(*args: Any, **given: Any) -> Any:
        said = signature.bind(*args, **given).arguments
        return await _call(link, route, said)

    act.__name__, act.__doc__ = route.action, route.help
    act.__signature__ = signature  # type: ignore[attr-defined]
    return act


async def _call(link: ApiConnection, route: Route, said: dict[str, Any]) -> Any:
    ask: ActionRequest | None = said.pop("ask", None)
    path = PREFIX + route.path.replace(":path", "")
    for name, value in said.items():
        path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
    body = None
    if ask is not None and route.has_body:
        body = msgspec.json.encode(ask)
    elif ask is not None:
        path = f"{path}?{urlencode(_query(ask))}".rstrip("?")
    answer = await link.send(route.method, path, body)
    if answer.status not in (route.status, 200):
        raise error_of(answer)
    return None if route.signature.answer is None else _view(answer.body, route)


def _query(ask: ActionRequest) -> dict[str, str]:
    """What was said, as text; what is as usual is left out."""
    usual = {field.name: field.default for field in msgspec.structs.fields(ask)}
    said = msgspec.to_builtins(ask)
    return {name: _text(said[name]) for name in said if getattr(ask, name) != usual[name]}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _view(body: bytes, route: Route) -> Any:
    try:
        return msgspec.json.decode(body, type=route.signature.answer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise not_a_rota_server(
            f"its answer to {route.method} {route.path} cannot be read: {error}"
        ) from None
