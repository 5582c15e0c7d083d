"""Settings: where they come from and what they may be.

Keyword argument > environment (``ROTA_…``) > ``rota.toml`` (``[rota]``) or ``pyproject.toml``
(``[tool.rota]``) > default. Ranges are checked here, once; a message names key, value and range.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from .errors import ConfigError

DEFAULT_URL = "sqlite:///rota.db"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    url: str = DEFAULT_URL
    worker_concurrency: int = 32
    poll_interval_ms: int = 1000
    lease_duration_s: float = 30.0
    max_attempts: int = 3
    scheduler_enabled: bool = True
    scheduler_tick_s: float = 1.0
    shutdown_timeout_s: float = 30.0
    max_payload_bytes: int = 1024 * 1024
    retention_succeeded_days: float = 7.0
    retention_failed_days: float = 30.0
    retention_cancelled_days: float = 7.0


RANGES: dict[str, tuple[float, float]] = {
    "worker_concurrency": (1, 4096),
    "poll_interval_ms": (10, 60_000),
    "lease_duration_s": (5, 3600),
    "max_attempts": (1, 100),
    "scheduler_tick_s": (1, 3600),
    "shutdown_timeout_s": (0, 86_400),
    "max_payload_bytes": (1, 64 * 1024 * 1024),
    "retention_succeeded_days": (0, 36_500),
    "retention_failed_days": (0, 36_500),
    "retention_cancelled_days": (0, 36_500),
}

_TYPES: dict[str, type] = {f.name: f.type for f in msgspec.structs.fields(Settings)}


def load(
    given: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings in force, or a ConfigError that names the one that cannot be used."""
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    for name, value in _from_file(folder or Path.cwd()).items():
        values[name] = _checked(name, value, "the configuration file")
    if "DATABASE_URL" in environ:
        values["url"] = environ["DATABASE_URL"]
    for name in _TYPES:
        variable = f"ROTA_{name.upper()}"
        if variable in environ:
            values[name] = _checked(name, environ[variable], f"the environment variable {variable}", lax=True)
    for name, value in (given or {}).items():
        if value is not None:
            values[name] = _checked(name, value, "Rota(…)")
    return Settings(**values)


def _from_file(folder: Path) -> Mapping[str, Any]:
    for name, path in (("rota.toml", ("rota",)), ("pyproject.toml", ("tool", "rota"))):
        file = folder / name
        if not file.is_file():
            continue
        try:
            table: Any = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            if name == "pyproject.toml":
                continue  # not ours to judge
            raise ConfigError(f"{name} cannot be read: {error}") from error
        for part in path:
            table = table.get(part, {}) if isinstance(table, dict) else {}
        if isinstance(table, dict) and table:
            return table
    return {}


def _checked(name: str, value: Any, source: str, lax: bool = False) -> Any:
    if name not in _TYPES:
        near = difflib.get_close_matches(name, _TYPES, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; known settings: {', '.join(_TYPES)}"
        raise ConfigError(f"{source}: there is no setting {name!r}{hint}")
    try:
        result: Any = msgspec.convert(value, _TYPES[name], strict=not lax)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {name}={value!r} cannot be used: {error}") from error
    if name in RANGES:
        low, high = RANGES[name]
        if not low <= result <= high:
            raise ConfigError(f"{source}: {name}={value!r} is out of range: {low:g} to {high:g}")
    return result
