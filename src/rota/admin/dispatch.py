"""From a route to its action: who calls, what they ask, what the desk answers. The same for all routes."""

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
from .authentication import Authenticator
from .problems import Problem, of_error
from .requests import from_body, from_query, read_json
from .responses import answer
from .routes import PREFIX, ROUTES, Route

Endpoint = Callable[[Request], Awaitable[Response]]
IDEMPOTENCY_KEY = "idempotency-key"
LONGEST_NAME = 400
LEAST_BODY = 2**20
BESIDE_PAYLOAD = 64 * 1024


class Dispatch:
    def __init__(self, rota: Rota, callers: Authenticator) -> None:
        self._rota, self._callers = rota, callers
        self.most_body = max(rota.settings.max_payload_bytes + BESIDE_PAYLOAD, LEAST_BODY)

    def paths(self) -> list[Path]:
        """One entry per path, so that a wrong method is told which ones there are."""
        by_path: dict[str, list[Route]] = {}
        for route in ROUTES:
            by_path.setdefault(route.path, []).append(route)
        return [
            Path(PREFIX + path, self._endpoint(routes), methods=[route.method for route in routes])
            for path, routes in by_path.items()
        ]

    def _endpoint(self, routes: Sequence[Route]) -> Endpoint:
        by_method = {route.method: route for route in routes}

        async def endpoint(request: Request) -> Response:
            return await self.act(by_method["GET" if request.method == "HEAD" else request.method], request)

        return endpoint

    async def act(self, route: Route, request: Request) -> Response:
        """Who it is comes first: nobody learns anything from how a request is refused."""
        caller = await self._callers.of(request)
        given = self._names(route, request)
        ask = await self._ask(route, request)
        room, _, name = route.action.partition(".")
        action = getattr(getattr(self._rota.operations(caller.actor), room), name)
        try:
            made = await (action(**given) if ask is None else action(**given, ask=ask))
        except RotaError as error:
            problem = of_error(error, () if ask is None else ask.__struct_fields__)
            if problem is None:
                raise
            raise problem from error
        return answer(made, route.status)

    def _names(self, route: Route, request: Request) -> dict[str, str]:
        """What stands in the path. A job's id must look like one."""
        given: dict[str, str] = dict(request.path_params)
        for name, value in given.items():
            is_job = name == "id" and route.path.startswith("/jobs/")
            if len(value) > LONGEST_NAME or "\0" in value or (is_job and not is_id(value.lower())):
                raise Problem(
                    400,
                    "bad_id",
                    f"The {name} in the path is not one"
                    + (": a job's id looks like 0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60." if is_job else "."),
                    field=name,
                )
        return given

    async def _ask(self, route: Route, request: Request) -> Any:
        kind = route.signature.ask
        if route.has_body:
            if request.query_params:
                raise Problem(422, "bad_input", "This takes a JSON body, not a query.", field="query")
            body = await read_json(request, self.most_body)
            made = from_body(body, kind or Empty)
        else:
            made = from_query(request.query_params.multi_items(), kind or Empty)
        if kind is None:
            return None
        key = request.headers.get(IDEMPOTENCY_KEY)
        return made if key is None or "idempotency_key" not in kind.__struct_fields__ else _keyed(made, key)


class Empty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an action takes that needs no more than its path."""


def _keyed(ask: Any, key: str) -> Any:
    if not 0 < len(key) <= 200:
        raise Problem(
            422, "bad_input", "Idempotency-Key: must have 1 to 200 characters", field="Idempotency-Key"
        )
    return msgspec.structs.replace(ask, idempotency_key=key)
