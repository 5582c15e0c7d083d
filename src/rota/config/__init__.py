"""Settings: their definitions (``settings``), their sources (``sources``) and the values in force.

Keyword argument or flag > environment (``ROTA_…``, or ``ROTA_…_FILE``: a file that contains the value) >
``rota.toml`` (``[rota]``) or ``pyproject.toml`` (``[tool.rota]``) > default. Values are checked here,
once. A message names the source, key, value and range, and never a password.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from .passwords import without_password
from .settings import DEFAULT_URL, FIELDS, HELP, RANGES, SECRET_FIELDS, Settings, checked, is_hidden
from .sources import flat, from_environment, from_file

__all__ = [
    "DEFAULT_URL",
    "HELP",
    "RANGES",
    "SECRET_FIELDS",
    "Settings",
    "explain",
    "load",
    "replaced",
    "sources_of",
]


def load(
    given: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Return the settings in force, or raise a ConfigError that names the invalid one."""
    environ = os.environ if environ is None else environ
    keywords = {name: value for name, value in (given or {}).items() if value is not None}
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in (from_file(folder or Path.cwd()), from_environment(environ), flat(keywords, "given")):
        for name, value, source in layer:
            values[name] = checked(name, value, source)
            sources[name] = source
    return _with_sources(Settings(**values), sources)


def replaced(settings: Settings, **given: Any) -> Settings:
    """A copy with some settings changed, as if they had been given from the start."""
    values = {name: checked(name, value, "given") for name, value in given.items()}
    sources = {**sources_of(settings), **dict.fromkeys(given, "given")}
    return _with_sources(msgspec.structs.replace(settings, **values), sources)


def _with_sources(settings: Settings, sources: dict[str, str]) -> Settings:
    vars(settings)["sources"] = sources
    return settings


def sources_of(settings: Settings) -> Mapping[str, str]:
    """The source of each value that is not a default."""
    found: Mapping[str, str] = vars(settings).get("sources", {})
    return found


def explain(settings: Settings, *, show_secrets: bool = False) -> list[dict[str, Any]]:
    """Each setting: its value (passwords masked), default, source, range and meaning. Plain JSON."""
    sources = sources_of(settings)
    explained = []
    for name, field in FIELDS.items():
        value = getattr(settings, name)
        explained.append(
            {
                "name": name,
                "value": _plain(without_password(value) if is_hidden(name) and not show_secrets else value),
                "default": _plain(field.default),
                "source": sources.get(name, "default" if value == field.default else "given"),
                "range": RANGES.get(name),
                "help": HELP[name],
            }
        )
    return explained


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
