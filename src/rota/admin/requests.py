"""Reading HTTP requests: their origin, body and query. Everything is bounded; nothing is trusted."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
from starlette.requests import ClientDisconnect, Request

from .problems import Problem, bad_input

A = TypeVar("A", bound=msgspec.Struct)

DEEPEST = 100
READ_S = 10.0  # for the body, and again for each MiB of it that has arrived
FULL = "rota.full"  # in the state of a request on a connection beyond the limit
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip")
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
# Possessive, and accepts an unterminated string: no input is scanned more than once.
_MARKS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


# --- origin --------------------------------------------------------------------------------------


class Origin:
    """Address, scheme and host of a request; proxy headers count only with ``behind_proxy``."""

    def __init__(self, request: Request, behind_proxy: bool) -> None:
        headers = request.headers
        self.forwarded = any(name in headers for name in FORWARDED)
        self.address = request.client.host if request.client is not None else "unknown"
        self.scheme = str(request.scope.get("scheme", "http"))
        self.host = headers.get("host", "")
        # A proxy on this machine that is not trusted: who is behind it is not known.
        self.is_known = behind_proxy or not (self.forwarded and is_loopback(self.address))
        if behind_proxy:
            self.address = _without_port(_last(headers.getlist("x-forwarded-for"))) or self.address
            self.scheme = _last(headers.getlist("x-forwarded-proto")) or self.scheme

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def name(self) -> str:
        """The host without its port."""
        return host_name(self.host)

    @property
    def is_local(self) -> bool:
        """The client is on this machine, with no proxy in between."""
        return not self.forwarded and is_loopback(self.address)


def _last(lines: Sequence[str]) -> str | None:
    """The entry that the nearest proxy wrote: the last one of the last header."""
    return ",".join(lines).rsplit(",", 1)[-1].strip()[:100] or None


def _without_port(address: str | None) -> str | None:
    """Some proxies write the client's port too, which changes with every connection."""
    if address is None or not address.startswith("["):
        return address.partition(":")[0] if address is not None and address.count(":") == 1 else address
    return address[1:].partition("]")[0]


def host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


# --- body ----------------------------------------------------------------------------------------


async def read_json(request: Request, most: int) -> bytes:
    """The body, if it is JSON, not too long, not too deep, and arrives in time; b"" if there is none."""
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise too_long(most)
    body = await _read(request, most)
    if not body:
        return b""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "not_json", "The body must be JSON: send Content-Type: application/json.")
    if is_too_deep(body):
        raise Problem(422, "bad_input", f"the body: nested more than {DEEPEST} levels deep")
    return body


async def _read(request: Request, most: int) -> bytes:
    parts, size, began = [], 0, asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(READ_S) as limit:
            async for part in request.stream():
                parts.append(part)
                if (size := size + len(part)) > most:
                    raise too_long(most)
                limit.reschedule(began + READ_S * (1 + size / 2**20))
    except TimeoutError:
        raise Problem(408, "too_slow", "The body did not arrive in time.", headers=CLOSE) from None
    except ClientDisconnect:
        raise Problem(400, "bad_request", "The request ended in the middle of its body.") from None
    return b"".join(parts)


CLOSE = {"Connection": "close"}


def too_long(most: int) -> Problem:
    return Problem(413, "too_large", f"The body is longer than {most} bytes.", headers=CLOSE)


def is_too_deep(body: bytes, deepest: int = DEEPEST) -> bool:
    """Whether brackets nest deeper than this, without parsing."""
    if body.count(b"[") + body.count(b"{") <= deepest:
        return False
    depth = 0
    for mark in _MARKS.finditer(body):
        first = mark[0][:1]
        if first in b"[{":
            depth += 1
            if depth > deepest:
                return True
        elif first in b"]}":
            depth -= 1
    return False


def from_body(body: bytes, kind: type[A]) -> A:
    """Decode a body; no body: the defaults of the request."""
    try:
        decoded = msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise bad_input(error) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(422, "bad_input", f"the body is not JSON: {error}") from None
    check(decoded)
    return decoded


# --- query ---------------------------------------------------------------------------------------


def from_query(pairs: Iterable[tuple[str, str]], kind: type[A]) -> A:
    """Decode a query. Lists by repetition or with commas; a single value only once."""
    lists = _lists(kind)
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in lists:
            given.setdefault(name, []).extend(part for part in value.split(",") if part)
        elif name in given:
            raise Problem(422, "bad_input", f"{name}: given twice", field=name)
        else:
            given[name] = value
    try:
        decoded = msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise bad_input(error, query=True) from None
    check(decoded)
    return decoded


@lru_cache
def _lists(kind: type[msgspec.Struct]) -> frozenset[str]:
    hints = get_type_hints(kind)
    return frozenset(name for name, hint in hints.items() if get_origin(hint) is tuple)


# --- values that no store can hold ---------------------------------------------------------------


def check(value: Any, field: str = "") -> None:
    """Reject times without a zone or out of range, and strings with a NUL; payloads are checked later."""
    match value:
        case msgspec.Struct():
            for name in value.__struct_fields__:
                check(getattr(value, name), f"{field}.{name}" if field else name)
        case tuple():
            for one in value:
                check(one, field)
        case str() if "\0" in value:
            raise Problem(422, "bad_input", f"{field}: has a NUL character", field=field)
        case datetime() if value.tzinfo is None:
            raise Problem(
                422, "bad_input", f"{field}: has no time zone: write it as 2030-01-31T08:00:00Z", field=field
            )
        case datetime() if not EARLIEST <= value <= LATEST:
            raise Problem(422, "bad_input", f"{field}: is outside 1970 to 9000", field=field)
