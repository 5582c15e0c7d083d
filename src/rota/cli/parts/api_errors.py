"""A server's refusal becomes the error that the desk itself would have raised."""

from __future__ import annotations

from typing import Any

import msgspec

from ...errors import (
    AlreadyRegistered,
    ConfigError,
    DuplicateJob,
    Forbidden,
    IllegalMove,
    NotFound,
    OptionError,
    PayloadError,
    RotaError,
    StoreError,
    StoreUnavailable,
)
from .http_client import ApiResponse

BY_CODE: dict[str, type[RotaError]] = {
    "already_registered": AlreadyRegistered,
    "duplicate_job": DuplicateJob,
    "illegal_move": IllegalMove,
}
BY_STATUS: dict[int, type[RotaError]] = {
    400: OptionError,
    403: Forbidden,
    404: NotFound,
    409: IllegalMove,
    413: PayloadError,
    421: ConfigError,
    422: OptionError,
    503: StoreUnavailable,
}


def error_of(answer: ApiResponse) -> RotaError:
    """What went wrong, in the server's words; a stranger's answer in ours."""
    if answer.status == 401:
        return ConfigError(
            "the server does not let us in: the token is missing, wrong or expired (ROTA_TOKEN)"
        )
    if 300 <= answer.status < 400:
        return not_a_rota_server(f"it sends us to {answer.headers.get('location', 'another place')!r}")
    told = _problem(answer)
    if told is None or told.get("code") == "no_such_path":
        return not_a_rota_server(f"it answered {answer.status} without saying why")
    detail = str(told.get("detail") or told.get("title") or f"the server answered {answer.status}")
    kind = BY_CODE.get(str(told.get("code"))) or BY_STATUS.get(answer.status, StoreError)
    if kind is OptionError and told.get("field") == "payload":
        kind = PayloadError
    if kind is IllegalMove:
        return IllegalMove(detail, told.get("state"))
    if kind is DuplicateJob:
        return DuplicateJob(detail, told.get("job"))
    return kind(_with_id(detail, told) if answer.status >= 500 else detail)


def not_a_rota_server(why: str) -> ConfigError:
    return ConfigError(f"this is not the address of a rota server of our version: {why}; check --api")


def _problem(answer: ApiResponse) -> dict[str, Any] | None:
    if not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    try:
        told = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _with_id(detail: str, told: dict[str, Any]) -> str:
    """The id by which the server's own log tells more."""
    return f"{detail} (request {told['request_id']})" if told.get("request_id") else detail
