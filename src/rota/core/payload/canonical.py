"""Values to canonical JSON text and back: one verdict for every store, before any SQL.

Pure. What may go in: None, bool, int (64 bits), float (finite), str, bytes (as base64), lists, tuples,
sets, dicts, enums, dates and times, UUID, Decimal (as text), dataclasses, msgspec Structs, attrs
classes and pydantic models. Keys become text: ``{1: "a"}`` is stored as ``{"1": "a"}`` and comes back
as an int only where the task's annotation says ``dict[int, …]``; other keys that have one text form
(UUID, dates, enums, numbers) are written the same way, anything else is refused.

msgspec writes the text in one go; cheap searches of the text then tell whether anything in it *may*
break a rule, and only then is the value walked in Python to find out where.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ...errors import PayloadError
from .inspection import MAX_DEPTH, dump_model, first_fault

MAX_BYTES = 1024 * 1024

_ALL_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19  # the shortest that may not fit into 64 bits
_ODD_FLOAT = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")  # MessagePack: a double whose exponent is all ones


def _plain(value: Any) -> Any:
    """What msgspec does not know by itself."""
    for base in (str, int, float):  # subclasses, such as a template engine's safe text
        if isinstance(value, base):
            return base(value)
    dumped = dump_model(value)
    if dumped is None:
        raise TypeError(f"values of type {type(value).__qualname__} cannot be stored as JSON")
    return dumped


_encode = msgspec.json.Encoder(enc_hook=_plain).encode
_decode = msgspec.json.Decoder().decode
_pack = msgspec.msgpack.Encoder(enc_hook=_plain).encode


def encode(value: Any, *, limit: int = MAX_BYTES, what: str = "payload") -> str:
    """The JSON text of ``value``; PayloadError names the place in it, the cause and the remedy."""
    try:
        raw = _encode(value)
    except Exception as error:  # user code may run inside: properties, model_dump
        raise PayloadError(_explain(value, what, error)) from error
    if len(raw) > limit:
        raise PayloadError(_too_long(len(raw), limit, what))
    suspicious = _suspicious(raw) or (b"null" in raw and _may_have_odd_floats(value))
    if suspicious and (fault := first_fault(value, what)):
        raise PayloadError(fault)
    return raw.decode()


def decode(text: str, *, limit: int = MAX_BYTES, what: str = "payload") -> Any:
    """The plain value of JSON text from outside, held to the rules of ``encode``; of equal keys the last."""
    try:
        raw = text.encode()
        if len(raw) > limit:
            raise PayloadError(_too_long(len(raw), limit, what))
        value = _decode(raw)
    except RecursionError:
        raise PayloadError(f"{what}: nested deeper than {MAX_DEPTH} levels") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise PayloadError(f"{what} is not valid JSON: {error}") from error
    if _suspicious(raw) and (fault := first_fault(value, what)):
        raise PayloadError(fault)
    return value


def _suspicious(raw: bytes) -> bool:
    """May be wrong about sound text, never about faulty text."""
    return (
        b"\\u0000" in raw
        or _LONG_NUMBER in raw.translate(_ALL_DIGITS_ALIKE)
        # what is opened is closed again, so a short text cannot be deep
        or (len(raw) > 2 * MAX_DEPTH and raw.count(b"[") + raw.count(b"{") > MAX_DEPTH)
    )


def _may_have_odd_floats(value: Any) -> bool:
    """JSON text has ``null`` for NaN and for None alike; MessagePack tells them apart, as quickly."""
    try:
        return _ODD_FLOAT.search(_pack(value)) is not None
    except Exception:  # what MessagePack cannot carry is for the walk to judge
        return True


def _explain(value: Any, what: str, error: Exception) -> str:
    try:
        fault = first_fault(value, what)
    except Exception:  # the value's own code again; the first error tells more
        fault = None
    return fault or f"{what} cannot be stored as JSON: {type(error).__name__}: {error}"


def _too_long(size: int, limit: int, what: str) -> str:
    return (
        f"{what} is {size} bytes long, the limit is {limit} bytes: "
        "store the data elsewhere and pass a reference, or raise max_payload_bytes"
    )
