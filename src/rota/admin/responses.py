"""Answers as JSON."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

_encoder = msgspec.json.Encoder()


def encoded(value: Any) -> bytes:
    return _encoder.encode(value)


def answer(value: Any, status: int = 200) -> Response:
    """The value as JSON; nothing at all for 204."""
    if status == 204:
        return Response(status_code=204)
    return Response(encoded(value), status, media_type="application/json")
