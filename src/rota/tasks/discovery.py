"""Imports the modules whose tasks a worker needs: by name, or by a pattern with ``*``.

``shop.mail`` is one module; ``shop.*.tasks`` is every module ``tasks`` one package below ``shop``, and
``shop.tasks.*`` every module of the package ``shop.tasks``. A ``*`` matches one name, or part of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from ..errors import ConfigError, RotaError


def import_modules(patterns: Iterable[str]) -> list[str]:
    """Import the modules that the patterns name, in order; their names."""
    names = list(dict.fromkeys(name for pattern in patterns for name in find_modules(pattern)))
    for name in names:
        _import(name)
    return names


def find_modules(pattern: str) -> list[str]:
    """The modules that a pattern names, sorted; ConfigError if there are none."""
    parts = pattern.split(".")
    plain = next((place for place, part in enumerate(parts) if "*" in part), len(parts))
    if not all(parts) or not plain:
        raise ConfigError(f"imports: {pattern!r} names no module: write shop.mail, or shop.*.tasks")
    found = [".".join(parts[:plain])]
    for place, part in enumerate(parts[plain:], plain + 1):
        inside = place < len(parts)  # only a package can have something inside
        found = [f"{package}.{name}" for package in found for name in _names(package, part, inside)]
    if not found:
        raise ConfigError(f"imports: no module matches {pattern!r}: check the name, and where rota is run")
    return found


def _names(package: str, pattern: str, packages_only: bool) -> list[str]:
    path = list(getattr(_import(package), "__path__", ()))
    names = {module.name for module in iter_modules(path) if module.ispkg or not packages_only}
    # A folder without __init__.py is a package too; iter_modules leaves it out.
    names |= {folder.name for part in path for folder in Path(part).glob("*/") if folder.name.isidentifier()}
    return sorted(name for name in names - {"__pycache__"} if fnmatchcase(name, pattern))


def _import(name: str) -> object:
    try:
        return import_module(name)
    except RotaError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise ConfigError(
                f"imports: there is no module {error.name!r} on the Python path; "
                "run rota where your code is, or set PYTHONPATH"
            ) from error
        raise ConfigError(f"imports: importing {name} failed: {error}") from error
    except Exception as error:
        raise ConfigError(f"imports: importing {name} failed: {type(error).__name__}: {error}") from error
