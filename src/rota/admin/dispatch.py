"""From an HTTP request to its action: authenticate, decode, call, encode. The same for all routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Path

from ..app import Rota
from ..core.ids import is_id
from ..errors import RotaError
from ..operate.requests import EmptyRequest
from ..runtime.heavy import Caller, HeavyResponses, serve_with
from .authentication import SAFE, Authenticator
from .problems import Problem, of_error
from .requests import from_body, from_query, read_json
from .responses import json_response
from .routes import PREFIX, ROUTES, Route

Endpoint = Callable[[Request], Awaitable[Response]]
IDEMPOTENCY_KEY = "idempotency-key"
LONGEST_NAME = 400
LEAST_BODY = 2**20
BESIDE_PAYLOAD = 64 * 1024


class Client(Caller):
    """The client of a request; its body must have been read."""

    def __init__(self, request: Request) -> None:
        self._request = request

    async def gone(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass


class Dispatch:
    """Serves every route of the table."""

    def __init__(self, rota: Rota, authenticator: Authenticator) -> None:
        self._rota, self._authenticator = rota, authenticator
        self.heavy = HeavyResponses()
        self.most_body = max(rota.settings.max_payload_bytes + BESIDE_PAYLOAD, LEAST_BODY)

    def paths(self) -> list[Path]:
        """One entry per path, so that the response to a wrong method can list the right ones."""
        by_path: dict[str, list[Route]] = {}
        for route in ROUTES:
            by_path.setdefault(route.path, []).append(route)
        return [
            Path(PREFIX + path, self._endpoint(routes), methods=[route.method for route in routes])
            for path, routes in by_path.items()
        ]

    def _endpoint(self, routes: Sequence[Route]) -> Endpoint:
        by_method = {route.method: route for route in routes}

        async def endpoint(http_request: Request) -> Response:
            method = "GET" if http_request.method == "HEAD" else http_request.method
            return await self.handle(by_method[method], http_request)

        return endpoint

    async def handle(self, route: Route, http_request: Request) -> Response:
        """Authentication comes first: without it, an error says nothing about the request."""
        caller = await self._authenticator.authenticate(http_request)
        await self._authenticator.note_use(caller, route.permission)
        names = self._names(route, http_request)
        request = await self._request(route, http_request)
        group, _, name = route.action.partition(".")
        action = getattr(getattr(self._rota.operations(caller.actor), group), name)
        serve_with(self.heavy, Client(http_request))
        try:
            result = await (action(**names) if request is None else action(**names, request=request))
        except RotaError as error:
            problem = of_error(error, () if request is None else request.__struct_fields__, names)
            if problem is None:
                raise
            raise problem from error
        finally:
            if http_request.method not in SAFE:
                self.heavy.forget()  # answers kept from before this change
        return json_response(result, route.status)

    def _names(self, route: Route, http_request: Request) -> dict[str, str]:
        """The names in the path. A job's id must look like one."""
        given: dict[str, str] = dict(http_request.path_params)
        for name, value in given.items():
            is_job = name == "id" and route.path.startswith("/jobs/")
            if len(value) > LONGEST_NAME or "\0" in value or (is_job and not is_id(value.lower())):
                raise Problem(
                    400,
                    "bad_id",
                    f"The {name} in the path is invalid"
                    + (": a job's id looks like 0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60." if is_job else "."),
                    field=name,
                )
        return given

    async def _request(self, route: Route, http_request: Request) -> Any:
        kind = route.signature.request
        if route.has_body:
            if http_request.query_params:
                raise Problem(422, "bad_input", "Send a JSON body, not a query.", field="query")
            body = await read_json(http_request, self.most_body)
            request = from_body(body, kind or EmptyRequest)
        else:
            request = from_query(http_request.query_params.multi_items(), kind or EmptyRequest)
        if kind is None:
            return None
        key = http_request.headers.get(IDEMPOTENCY_KEY)
        return (
            request
            if key is None or "idempotency_key" not in kind.__struct_fields__
            else _with_key(request, key)
        )


def _with_key(request: Any, key: str) -> Any:
    if not 0 < len(key) <= 200:
        raise Problem(
            422, "bad_input", "Idempotency-Key: must have 1 to 200 characters", field="Idempotency-Key"
        )
    return msgspec.structs.replace(request, idempotency_key=key)
