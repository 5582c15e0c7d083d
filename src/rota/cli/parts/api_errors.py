"""An error response becomes the error that the operation itself would have raised."""

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
    QuotaExceeded,
    RotaError,
    StoreError,
    StoreUnavailable,
)
from ...operate.bulk import BulkInterrupted
from .http_client import ApiResponse

BY_CODE: dict[str, type[RotaError]] = {
    "already_registered": AlreadyRegistered,
    "duplicate_job": DuplicateJob,
    "illegal_move": IllegalMove,
    "quota_exceeded": QuotaExceeded,
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


def error_of(response: ApiResponse) -> RotaError:
    """The error of a response, in the server's words if it is a rota server."""
    if response.status == 401:
        return ConfigError("not authenticated: the API token is missing, invalid or expired (ROTA_TOKEN)")
    if 300 <= response.status < 400:
        return not_a_rota_server(f"it redirects to {response.headers.get('location', 'another URL')!r}")
    problem = _problem(response)
    if problem is None or problem.get("code") == "no_such_path":
        return not_a_rota_server(f"it answered {response.status} without a problem document")
    detail = str(problem.get("detail") or problem.get("title") or f"the server answered {response.status}")
    kind = BY_CODE.get(str(problem.get("code"))) or BY_STATUS.get(response.status, StoreError)
    if kind is OptionError and problem.get("field") == "payload":
        kind = PayloadError
    if kind is IllegalMove:
        return IllegalMove(detail, problem.get("state"))
    if kind is DuplicateJob:
        return DuplicateJob(detail, problem.get("job"))
    if problem.get("code") == "interrupted" and isinstance(problem.get("done"), int):
        return BulkInterrupted(problem["done"])
    return kind(_with_id(detail, problem) if response.status >= 500 else detail)


def not_a_rota_server(why: str) -> ConfigError:
    return ConfigError(f"--api: not a rota server, or an incompatible version: {why}")


def _problem(response: ApiResponse) -> dict[str, Any] | None:
    if not response.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    try:
        problem = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return problem if isinstance(problem, dict) else None


def _with_id(detail: str, problem: dict[str, Any]) -> str:
    """The message with the request id to look up in the server's log."""
    return f"{detail} (request {problem['request_id']})" if problem.get("request_id") else detail
