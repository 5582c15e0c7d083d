"""Responses: JSON, and one that outlasts a request body that is still arriving."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

DRAIN_BYTES = 64 * 2**20
DRAIN_S = 10.0
_encoder = msgspec.json.Encoder()


def encode(value: Any) -> bytes:
    return _encoder.encode(value)


def json_response(value: Any, status: int = 200) -> Response:
    """The value as JSON; no body for 204."""
    if status == 204:
        return Response(status_code=204)
    return Response(encode(value), status, media_type="application/json")


class DrainingResponse(Response):
    """Sent at once, but the connection closes only after the rest of the request body, within bounds.

    A connection that is closed with unread data is reset, and a client that is still sending would see that
    instead of the response.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        try:
            async with asyncio.timeout(DRAIN_S):
                await _drain(receive)
        except TimeoutError:
            pass
        await send({"type": "http.response.body", "body": b""})


async def _drain(receive: Receive) -> None:
    left = DRAIN_BYTES
    while left > 0:
        message = await receive()
        left -= len(message.get("body", b""))
        if not message.get("more_body", False):
            return
