"""Keys with placeholders, filled from a job's arguments, and the period that a key belongs to. Pure.

``order:{order_id}`` becomes ``order:42``; ``{order.id}`` goes into an object; ``{{order_id}}`` stays as
``{order_id}``. Any other brace is a character like all others.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from ...errors import OptionError
from ..payload.masking import is_secret
from .options import Options, name_text

_PATH = r"[^\W\d]\w*(?:\.\w+)*"
_PLACEHOLDER = re.compile(rf"\{{\{{({_PATH})\}}\}}|\{{({_PATH})\}}")
_MONDAY = datetime(2001, 1, 1, tzinfo=UTC)  # periods of days and weeks begin at midnight, in UTC


def is_template(text: str | None) -> bool:
    """Whether it may have placeholders."""
    return text is not None and "{" in text


def placeholders(template: str) -> list[str]:
    """The arguments that it needs."""
    return [path.partition(".")[0] for _, path in _PLACEHOLDER.findall(template) if path]


def check_placeholders(what: str, template: str, names: Sequence[str]) -> None:
    """OptionError for a placeholder that none of a task's arguments fills."""
    for name in placeholders(template):
        if name not in names:
            raise OptionError(f"{what}={template!r}: {_unknown(name, names)}")


def fill(what: str, template: str, payload_json: str, secrets: Sequence[str] = ()) -> str:
    """The template with the job's arguments in place of its placeholders; none that is secret by its name."""
    if "{" not in template:
        return template
    first, *others = _parts(what, template, tuple(secrets))
    if not others:
        return first
    arguments = msgspec.json.decode(payload_json)
    pieces = [first]
    for path, text in zip(others[::2], others[1::2], strict=True):
        pieces += (_text(what, template, path, arguments), text)
    return name_text(what, "".join(pieces))


@lru_cache(maxsize=256)  # one template fills the keys of a whole batch
def _parts(what: str, template: str, secrets: tuple[str, ...]) -> Sequence[str]:
    """A text, then in turns the path of a placeholder and the text after it."""
    parts, end = [""], 0
    for match in _PLACEHOLDER.finditer(template):
        literal, path = match.groups()
        parts[-1] += template[end : match.start()]
        end = match.end()
        if literal is not None:
            parts[-1] += f"{{{literal}}}"
        else:
            _check_open(what, template, path, secrets)
            parts += (path, "")
    parts[-1] += template[end:]
    return parts


def filled_key(chosen: Options, payload_json: str, now: datetime, secrets: Sequence[str] = ()) -> str:
    """The key of one job: filled from its arguments, and of its period."""
    assert chosen.key is not None
    key = fill("key", chosen.key, payload_json, secrets)
    return key if chosen.key_per is None else in_period("key", key, chosen.key_per, now)


def concurrency_key(chosen: Options, payload_json: str, secrets: Sequence[str] = ()) -> str | None:
    """The key of a limit that one job counts under, filled from its arguments."""
    given = chosen.concurrency_key
    return given if given is None else fill("concurrency_key", given, payload_json, secrets)


def kept_for(chosen: Options) -> float | None:
    """The seconds that the key stays taken after a success: with a period, long enough for the rest of it."""
    if chosen.key is None and (chosen.key_for is not None or chosen.key_per is not None):
        given = "key_for" if chosen.key_for is not None else "key_per"
        raise OptionError(f"{given} says how long a key is taken: give a key too")
    return chosen.key_per if chosen.key_for is None else chosen.key_for


def check_bulk_key(key: str) -> None:
    """OptionError for a key that all jobs of a bulk call would share."""
    if not placeholders(key):
        raise OptionError(
            f"key={key!r}: a bulk call makes many jobs, and a key names one: "
            "fill it from their arguments, as in key='order:{order_id}'"
        )


def in_period(what: str, key: str, period_s: float, now: datetime) -> str:
    """The key of one period: with the instant at which the period around ``now`` began."""
    period = timedelta(seconds=period_s)
    start = _MONDAY + (now - _MONDAY) // period * period
    return name_text(what, f"{key}@{start:%Y-%m-%dT%H:%M:%SZ}")


def _check_open(what: str, template: str, path: str, secrets: Sequence[str]) -> None:
    """A key is shown to all who see the job, and stands in logs and errors."""
    if any(is_secret(step, secrets) for step in path.split(".")):
        raise OptionError(
            f"{what}={template!r}: {path} is secret by its name (setting secret_fields), and a key is shown: "
            "use another argument"
        )


def _text(what: str, template: str, path: str, arguments: dict[str, Any]) -> str:
    found: Any = arguments
    for step in path.split("."):
        if not isinstance(found, dict) or step not in found:
            names = found if isinstance(found, dict) else ()
            raise OptionError(f"{what}={template!r}: {_unknown(step, names)}")
        found = found[step]
    if isinstance(found, dict | list):
        raise OptionError(
            f"{what}={template!r}: {path} is {'an object' if isinstance(found, dict) else 'a list'}; "
            f"use a text or a number, such as {{{path}.id}}"
        )
    return found if isinstance(found, str) else msgspec.json.encode(found).decode()


def _unknown(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), 1)
    hint = f"did you mean {{{near[0]}}}?" if near else f"to keep the braces, write {{{{{name}}}}}"
    return f"the job is given no argument {name!r}; {hint}"
