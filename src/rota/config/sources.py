"""Reads settings from the environment, from files that it names, and from TOML."""

from __future__ import annotations

import difflib
import logging
import os
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigError
from .passwords import has_password
from .settings import TYPES, from_text, place

log = logging.getLogger("rota.config")

FILES: dict[str, tuple[str, ...]] = {"rota.toml": ("rota",), "pyproject.toml": ("tool", "rota")}
VARIABLES = frozenset(f"ROTA_{name.upper()}{end}" for name in TYPES for end in ("", "_FILE"))
# Used by rota, but not settings.
OTHER_VARIABLES = frozenset(
    f"ROTA_{name}"
    for name in (
        "API",
        "APP",
        "CA_FILE",
        "DEBUG",
        "FAILPOINTS",
        "OVERRIDE_URL",
        "SUPERVISED",
        "TOKEN",
        "TOKEN_FILE",
    )
)


class SourcedValue(NamedTuple):
    """A value and its ``source``, as ``explain`` shows it."""

    name: str
    value: Any
    source: str


def table_of(file: Path) -> dict[str, Any] | None:
    """rota's table in ``rota.toml`` or ``pyproject.toml``; None if there is none."""
    is_own_file = file.name != "pyproject.toml"
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        if not is_own_file:
            return None  # other tools report that
        raise ConfigError(f"{file.name} cannot be read: {error}") from error
    if stray := [name for name in document if is_own_file and name != "rota"]:
        raise ConfigError(f"{file.name}: {stray[0]!r} is outside the table [rota]: move it below that line")
    found: Any = document
    for part in FILES[file.name]:
        found = found.get(part) if isinstance(found, dict) else None
    if found is not None and not isinstance(found, dict):
        raise ConfigError(f"{file.name}: {'.'.join(FILES[file.name])} must be a table")
    return found


def from_file(folder: Path) -> Iterator[SourcedValue]:
    for name in FILES:
        table = table_of(folder / name)
        if table is not None:
            if has_password(table.get("url")) and _is_open_to_others(folder / name):
                _warn_once(
                    f"{name} holds a password and others on this machine can read it: chmod 600 {name}, "
                    "or move the URL into a file of its own that ROTA_URL_FILE names"
                )
            yield from flat(table, name)
            return


def flat(table: Mapping[str, Any], source: str) -> Iterator[SourcedValue]:
    """``retention_days = {failed = 30}`` is equivalent to ``retention_failed_days = 30``."""
    for name, value in table.items():
        if name != "retention_days":
            yield SourcedValue(name, value, source)
            continue
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"{place(source)}: retention_days={value!r} must be a table such as {{failed = 30}}"
            )
        for state, days in value.items():
            long = f"retention_{state}_days"
            if long in table:
                raise ConfigError(
                    f"{place(source)}: retention_days.{state} and {long} are the same: keep one"
                )
            yield SourcedValue(long, days, source)


def from_environment(environ: Mapping[str, str]) -> Iterator[SourcedValue]:
    for name in TYPES:
        found = _variable(environ, f"ROTA_{name.upper()}")
        if found is None and name == "url":
            found = _variable(environ, "DATABASE_URL")
        if found is not None:
            text, source = found
            yield SourcedValue(name, from_text(name, text, source), source)
    _warn_of_unknown(environ)


def _variable(environ: Mapping[str, str], variable: str) -> tuple[str, str] | None:
    """The value of the variable, or of the file that ``…_FILE`` names, and its source."""
    by_file = f"{variable}_FILE"
    if by_file not in environ:
        return (environ[variable], f"environment {variable}") if variable in environ else None
    if variable in environ:
        raise ConfigError(f"{variable} and {by_file} are both set: unset one of them")
    try:
        text = Path(environ[by_file]).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{by_file}: cannot read {environ[by_file]!r}: {error.strerror}") from error
    except ValueError:
        raise ConfigError(f"{by_file}: {environ[by_file]!r} is not UTF-8 text") from None
    return text.rstrip("\r\n"), f"environment {by_file}"


def _warn_of_unknown(environ: Mapping[str, str]) -> None:
    """Warn of misspelt variables. Other programs may use the prefix, so they are not errors."""
    for variable in sorted(environ):
        if variable.startswith("ROTA_") and variable not in VARIABLES | OTHER_VARIABLES:
            near = difflib.get_close_matches(variable.removeprefix("ROTA_").lower(), TYPES, 1)
            hint = f"; did you mean ROTA_{near[0].upper()}?" if near else ""
            _warn_once(f"the environment variable {variable} is not a setting of rota{hint}")


@cache
def _warn_once(text: str) -> None:
    log.warning("%s", text)


def _is_open_to_others(file: Path) -> bool:
    return os.name == "posix" and file.stat().st_mode & 0o077 != 0
