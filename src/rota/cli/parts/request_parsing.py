"""Requests from flags, held to the same bounds as those that come over HTTP."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ...errors import OptionError
from ...operate.requests import ActionRequest

A = TypeVar("A", bound=ActionRequest)

FLAGS = {"for_s": "--for", "expires_s": "--expires"}  # where the flag has another name than the field


def parse_request(kind: type[A], **given: Any) -> A:
    """The request; what is out of bounds is named. None means that nothing was said."""
    said = {name: value for name, value in given.items() if value is not None}
    try:
        return msgspec.convert(said, kind)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        field = where.rstrip("`")
        raise OptionError(f"{FLAGS.get(field, field)}: {what}") from error
