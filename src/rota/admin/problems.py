"""Errors as ``application/problem+json``: a stable code, a message for people, and no internal details."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ..errors import (
    AlreadyRegistered,
    DuplicateJob,
    Forbidden,
    IllegalMove,
    InvalidSchedule,
    NotFound,
    OptionError,
    PayloadError,
    QuotaExceeded,
    RotaError,
    StoreError,
)
from ..operate.bulk import BulkInterrupted
from ..runtime.heavy import Abandoned, TooBusy
from .responses import DrainingResponse

MEDIA_TYPE = "application/problem+json"


class ProblemView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error (RFC 9457). ``code`` is stable; ``detail`` is for people."""

    status: int
    code: str
    title: str
    detail: str
    request_id: str
    field: str | None = None  # the invalid field of the request
    state: str | None = None  # of the job, if it does not allow the action
    job: str | None = None  # the job that holds the idempotency key
    done: int | None = None  # how many jobs were changed before the store failed


class Problem(Exception):
    """An error response."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        field: str | None = None,
        state: str | None = None,
        job: str | None = None,
        done: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.more: dict[str, Any] = {"field": field, "state": state, "job": job, "done": done}
        self.headers = dict(headers or {})

    def response(self, request_id: str) -> Response:
        view = ProblemView(
            status=self.status,
            code=self.code,
            title=HTTPStatus(self.status).phrase,
            detail=self.detail,
            request_id=request_id,
            **self.more,
        )
        kind = DrainingResponse if self.status == 413 else Response  # the body may still be arriving
        return kind(msgspec.json.encode(view), self.status, self.headers, MEDIA_TYPE)


BY_ERROR: tuple[tuple[type[RotaError], int, str], ...] = (
    (Forbidden, 403, "forbidden"),
    (NotFound, 404, "not_found"),
    (IllegalMove, 409, "illegal_move"),
    (DuplicateJob, 409, "duplicate_job"),
    (AlreadyRegistered, 409, "already_registered"),
    (QuotaExceeded, 429, "quota_exceeded"),
    (OptionError, 422, "bad_input"),
    (PayloadError, 422, "bad_input"),
    (InvalidSchedule, 422, "bad_input"),
)


def of_error(error: RotaError, fields: Collection[str] = (), path: Collection[str] = ()) -> Problem | None:
    """The problem that a client sees of an error of rota; None: none of its details are for clients."""
    if isinstance(error, BulkInterrupted):
        text = str(error)
        return Problem(503, "interrupted", f"{text[0].upper()}{text[1:]}.", done=error.done,
                       headers={"Retry-After": "5"})  # fmt: skip
    if isinstance(error, StoreError):  # its message may quote the database
        return Problem(503, "store_unavailable", "The store is unavailable: try again later.",
                       headers={"Retry-After": "5"})  # fmt: skip
    for kind, status, code in BY_ERROR:
        if isinstance(error, kind):
            return Problem(
                status,
                code,
                str(error),
                field=_field(str(error), fields, path) if status == 422 else None,
                state=getattr(error, "state", None),
                job=getattr(error, "job_id", None),
            )
    return None


def _field(text: str, fields: Collection[str], path: Collection[str]) -> str | None:
    """The part of the path that the message is about, else its first word that names a field."""
    of_path = next((name for name in path if text.startswith(f"{name}=")), None)
    return of_path or next((word for word in re.findall(r"\w+", text) if word in fields), None)


def bad_input(error: msgspec.ValidationError, *, query: bool = False) -> Problem:
    """The message of msgspec, with the field taken from its ``- at `$.field[0]` ``."""
    text, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".") or None
    if field is None and (named := re.search(r"(?:field|unknown field) `(\w+)`", text)):
        field = named[1]
    where = "the query" if query else "the body"
    return Problem(422, "bad_input", f"{where}: {text}" if field is None else f"{field}: {text}", field=field)


def of_http(error: HTTPException) -> Problem:
    codes = {404: "no_such_path", 405: "method_not_allowed"}
    code = codes.get(error.status_code, "bad_request")
    detail = {
        404: "Not found: /api/openapi.json lists all paths.",
        405: "Method not allowed: the header Allow lists those that are.",
    }.get(error.status_code, "The request is malformed.")
    return Problem(error.status_code, code, detail, headers=error.headers)


def unexpected() -> Problem:
    return Problem(500, "internal", "Internal error: the server log has the details under this request id.")


def unauthorised(detail: str = "Sign in, or send an API token: Authorization: Bearer rota_…") -> Problem:
    return Problem(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})


def of(error: Exception, fields: Collection[str] = ()) -> Problem | None:
    """The problem for an exception; None if it is unexpected."""
    match error:
        case Problem():
            return error
        case HTTPException():
            return of_http(error)
        case RotaError():
            return of_error(error, fields)
        case TooBusy():
            return Problem(503, "busy", "Too many answers that take long are being made: try again later.",
                           headers={"Retry-After": "2"})  # fmt: skip
        case Abandoned():
            return Problem(503, "abandoned", "The answer was given up: its client had gone.")
        case _:
            return None
