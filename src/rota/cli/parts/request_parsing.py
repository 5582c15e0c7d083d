"""Requests from options, checked against the same bounds as those that arrive over HTTP."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ...errors import OptionError
from ...operate.requests import ActionRequest

R = TypeVar("R", bound=ActionRequest)

FLAGS = {"for_s": "--for", "expires_s": "--expires"}  # where the option has another name than the field


def parse_request(kind: type[R], **given: Any) -> R:
    """The request; an error names the option that is out of bounds. None means not given."""
    fields = {name: value for name, value in given.items() if value is not None}
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        field = where.rstrip("`")
        raise OptionError(f"{FLAGS.get(field, field)}: {what}") from error
