"""The operations of a server: the same groups and actions as ``Operations``, each an HTTP request.

All are generated from the table of routes, so an action added there is here too. The token goes into
one header and nowhere else: not into an error, a log or the arguments of a process.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from ...admin.routes import GROUPS, PREFIX, ROUTES, Route
from ...errors import ConfigError
from ...operate.requests import ActionRequest
from .api_errors import error_of, not_a_rota_server
from .http_client import ApiConnection

TOKEN_FILE = "ROTA_TOKEN_FILE"


def read_token() -> str:
    """The token from the file that ROTA_TOKEN_FILE names; without one, an error that explains how."""
    name = os.environ.get(TOKEN_FILE)
    if not name:
        raise ConfigError(
            "--api needs an API token: set ROTA_TOKEN, or ROTA_TOKEN_FILE to a file that contains it; "
            "create one with rota token create"
        )
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a text file"
        raise ConfigError(f"{TOKEN_FILE}={name}: {why}") from None


class RemoteOperations:
    """Operations of a server instead of a store. The server checks permissions."""

    services = None  # those of the server are unknown here

    def __init__(self, url: str, token: str, ca_file: str | None = None) -> None:
        self.connection = ApiConnection(url, token, ca_file)
        for name in GROUPS:
            setattr(self, name, RemoteActionGroup(self.connection, name))

    async def close(self) -> None:
        self.connection.close()


class RemoteActionGroup:
    """One group of actions: a method for each of its routes."""

    def __init__(self, connection: ApiConnection, name: str) -> None:
        for route in ROUTES:
            group, _, action = route.action.partition(".")
            if group == name:
                setattr(self, action, _action(connection, route))


def _action(connection: ApiConnection, route: Route) -> Callable[..., Awaitable[Any]]:
    own = inspect.signature(route.function)
    signature = own.replace(parameters=list(own.parameters.values())[1:])  # without self

    async def act(*args: Any, **given: Any) -> Any:
        return await _call(connection, route, signature.bind(*args, **given).arguments)

    act.__name__, act.__doc__ = route.action, route.help
    act.__signature__ = signature  # type: ignore[attr-defined]
    return act


async def _call(connection: ApiConnection, route: Route, arguments: dict[str, Any]) -> Any:
    request = next((value for value in arguments.values() if isinstance(value, ActionRequest)), None)
    path = PREFIX + route.path.replace(":path", "")
    for name, value in arguments.items():
        path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
    body = None
    if request is not None and route.has_body:
        body = msgspec.json.encode(request)
    elif request is not None:
        path = f"{path}?{urlencode(_query(request))}".rstrip("?")
    response = await connection.send(route.method, path, body)
    if response.status not in (route.status, 200):
        raise error_of(response)
    return None if route.signature.view is None else _view(response.body, route)


def _query(request: ActionRequest) -> dict[str, str]:
    """The fields that differ from their default, as text."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(request)}
    values = msgspec.to_builtins(request)
    return {name: _text(values[name]) for name in values if getattr(request, name) != defaults[name]}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _view(body: bytes, route: Route) -> Any:
    try:
        return msgspec.json.decode(body, type=route.signature.view)
    except (msgspec.DecodeError, RecursionError) as error:
        raise not_a_rota_server(f"its response to {route.method} {route.path} is invalid: {error}") from None
