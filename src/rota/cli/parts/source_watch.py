"""The source files of the program, for ``--reload``: which they are, and which have changed.

Watches the folders of the modules that were imported, so that a file that is new or could not be imported
counts too; never the standard library nor installed packages.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from ...core.plurals import plural

SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})
Snapshot = Mapping[str, tuple[int, int]]  # when each file was written, and its size


class SourceWatch:
    """Compares the files with how they were at the last look."""

    def __init__(self, modules: Mapping[str, ModuleType | None] | None = None) -> None:
        self._folders = dict(_folders(sys.modules if modules is None else modules))
        self._seen = self._snapshot()

    def changed(self) -> list[str]:
        """The files that were written, added or removed since the last call."""
        before, self._seen = self._seen, self._snapshot()
        names = before.keys() | self._seen.keys()
        return sorted(name for name in names if before.get(name) != self._seen.get(name))

    def _snapshot(self) -> Snapshot:
        found: dict[str, tuple[int, int]] = {}
        for folder, is_package in self._folders.items():
            for path in _sources(folder, is_package):
                try:
                    status = os.stat(path)
                except OSError:  # removed meanwhile
                    continue
                found[path] = (status.st_mtime_ns, status.st_size)
        return found


def shown(files: Sequence[str]) -> str:
    """The first of them, and how many others there are."""
    more = f" and {plural(len(files) - 1, 'other file')}" if len(files) > 1 else ""
    return f"{os.path.relpath(files[0])}{more}"


def _folders(modules: Mapping[str, ModuleType | None]) -> Iterator[tuple[str, bool]]:
    """Each folder, and whether it is a package, whose folders below count too."""
    for name, module in list(modules.items()):
        path = getattr(module, "__file__", None)
        if name.partition(".")[0] == "rota" or not path or not path.endswith(".py") or _is_installed(path):
            continue
        top = modules.get(name.partition(".")[0])
        folders = list(getattr(top, "__path__", ()))
        yield from ((str(Path(folder).resolve()), True) for folder in folders)
        if not folders:
            yield str(Path(path).resolve().parent), False


def _is_installed(path: str) -> bool:
    library = Path(sysconfig.get_path("stdlib")).resolve()
    found = Path(path).resolve()
    return library in found.parents or not SKIPPED.isdisjoint(found.parts)


def _sources(folder: str, is_package: bool) -> Iterator[str]:
    for place, below, names in os.walk(folder):
        below[:] = [one for one in below if is_package and one not in SKIPPED and not one.startswith(".")]
        yield from (os.path.join(place, name) for name in names if name.endswith(".py"))
