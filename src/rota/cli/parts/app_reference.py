"""Imports the Rota object of ``package.module:app``; an error lists the objects that exist."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ... import config
from ...app import Rota
from ...errors import ConfigError, RotaError


def load(reference: str) -> Rota:
    """The object that the reference names. The current directory is importable."""
    module_name, separator, attribute = reference.partition(":")
    if not module_name or (separator and not attribute):
        raise ConfigError(f"--app {reference!r}: use package.module:app, such as shop.jobs:app")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise ConfigError(f"--app {reference!r}: a file, not a module; use {dotted}:{attribute or 'app'}")
    module = _import(module_name, reference)
    return _attribute(module, attribute, reference) if attribute else _only(module, reference)


def rebind(app: Rota, url: str) -> Rota:
    """The same app and tasks on another store."""
    os.environ["ROTA_URL"] = url  # for task processes, which import the app again
    app.runtime.use_store(url)
    return app


def load_tasks(app: Rota, imports: Sequence[str]) -> None:
    """Import the modules with the app's tasks: those in its settings, and these."""
    if imports:
        app.runtime.settings = config.replaced(app.settings, imports=(*app.settings.imports, *imports))
    app.import_tasks()


def _import(name: str, reference: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except RotaError as error:
        raise type(error)(f"--app {reference}: {_where(error)}{error}") from error
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and _is_part(error.name, name):
            raise ConfigError(
                f"--app {reference!r}: no module {error.name!r} in {here} or on the Python path; "
                "run rota in the folder of your code, or set PYTHONPATH"
            ) from error
        raise ConfigError(
            f"--app {reference}: importing {name} failed: {_where(error)}{type(error).__name__}: {error}"
        ) from error


def _is_part(missing: str | None, name: str) -> bool:
    return missing is not None and f"{name}.".startswith(f"{missing}.")


def _where(error: BaseException) -> str:
    """The line of the user's code that raised."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [f for f in frames if f.filename != __file__ and "importlib" not in f.filename]
    rota = str(Path(__file__).parents[2])
    own = [f for f in theirs if not f.filename.startswith(rota)]
    return f"{own[-1].filename}, line {own[-1].lineno}: " if own else ""


def _attribute(module: ModuleType, attribute: str, reference: str) -> Rota:
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if isinstance(found, Rota):
        return found
    problem = "does not exist" if found is None else f"is of type {type(found).__name__}, not a Rota object"
    raise ConfigError(f"--app {reference!r}: {attribute!r} {problem}; {_offer(module)}")


def _only(module: ModuleType, reference: str) -> Rota:
    apps = _apps(module)
    if len(apps) == 1:
        return next(iter(apps.values()))
    raise ConfigError(f"--app {reference!r}: no object named; {_offer(module)}")


def _apps(module: ModuleType) -> dict[str, Rota]:
    return {name: value for name, value in vars(module).items() if isinstance(value, Rota)}


def _offer(module: ModuleType) -> str:
    names = [f"{module.__name__}:{name}" for name in _apps(module)]
    if names:
        return f"{module.__name__} has {' and '.join(names)}"
    return f"{module.__name__} has no Rota object at module level; add app = Rota(…)"
