"""Errors as ``application/problem+json``: a stable code, what is wrong, and nothing of our insides."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from http import HTTPStatus

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
    RotaError,
    StoreError,
)

MEDIA_TYPE = "application/problem+json"


class ProblemView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong (RFC 9457). ``code`` is stable; ``detail`` is for people."""

    status: int
    code: str
    title: str
    detail: str
    request_id: str
    field: str | None = None  # of bad input
    state: str | None = None  # of the job that forbids the move
    job: str | None = None  # that holds the key


class Problem(Exception):
    """An answer that is not what was asked for."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        field: str | None = None,
        state: str | None = None,
        job: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.more = {"field": field, "state": state, "job": job}
        self.headers = dict(headers or {})

    def response(self, request_id: str) -> Response:
        told = ProblemView(
            status=self.status,
            code=self.code,
            title=HTTPStatus(self.status).phrase,
            detail=self.detail,
            request_id=request_id,
            **self.more,
        )
        return Response(msgspec.json.encode(told), self.status, self.headers, MEDIA_TYPE)


BY_ERROR: tuple[tuple[type[RotaError], int, str], ...] = (
    (Forbidden, 403, "forbidden"),
    (NotFound, 404, "not_found"),
    (IllegalMove, 409, "illegal_move"),
    (DuplicateJob, 409, "duplicate_job"),
    (AlreadyRegistered, 409, "already_registered"),
    (OptionError, 422, "bad_input"),
    (PayloadError, 422, "bad_input"),
    (InvalidSchedule, 422, "bad_input"),
)


def of_error(error: RotaError, fields: Collection[str] = ()) -> Problem | None:
    """The problem that an error of ours is to a client; None: it is no business of theirs."""
    if isinstance(error, StoreError):  # its text may quote the database
        return Problem(503, "store_unavailable", "The store cannot answer now: try again later.",
                       headers={"Retry-After": "5"})  # fmt: skip
    for kind, status, code in BY_ERROR:
        if isinstance(error, kind):
            return Problem(
                status,
                code,
                str(error),
                field=_field(str(error), fields) if status == 422 else None,
                state=getattr(error, "state", None),
                job=getattr(error, "job_id", None),
            )
    return None


def _field(text: str, fields: Collection[str]) -> str | None:
    """The first word of the message that names a field of the request."""
    return next((word for word in re.findall(r"\w+", text) if word in fields), None)


def bad_input(error: msgspec.ValidationError, *, query: bool = False) -> Problem:
    """What msgspec says, with the field taken out of its ``- at `$.field[0]` ``."""
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
        404: "There is nothing under this path: see /api/openapi.json for what there is.",
        405: "This path does not take this method: the header Allow names those it takes.",
    }.get(error.status_code, "The request cannot be understood.")
    return Problem(error.status_code, code, detail, headers=error.headers)


def unexpected() -> Problem:
    return Problem(500, "internal", "Something went wrong here; the log has it under this request id.")


def unauthorised(detail: str = "Sign in, or send a token: Authorization: Bearer rota_…") -> Problem:
    return Problem(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})


def of(error: Exception, fields: Collection[str] = ()) -> Problem | None:
    """The problem an exception is, or None if nobody foresaw it."""
    match error:
        case Problem():
            return error
        case HTTPException():
            return of_http(error)
        case RotaError():
            return of_error(error, fields)
        case _:
            return None
