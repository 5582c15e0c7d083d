"""Setting one key in ``rota.toml`` or ``pyproject.toml``: all else in the file stays as it was.

Owns the writing of configuration files. A file that it makes can be read by its owner alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config.sources import FILES, table_of
from ...errors import ConfigError
from .exit_codes import CommandFailed

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def in_force(folder: Path) -> Path:
    """The file whose table is read; ``rota.toml`` if there is none yet."""
    files = [folder / name for name in FILES]
    return next((file for file in files if table_of(file) is not None), files[0])


def write(file: Path, key: str, value: Any) -> None:
    """Set the key, or take it out if the value is None."""
    try:
        document = _read(file)
        _change(_table(document, file.name), key, value)
        _replace(file.resolve(), document.as_string().encode())  # a link stays a link
    except OSError as error:
        raise CommandFailed(f"cannot write {str(file)!r}: {error.strerror}") from error


def _read(file: Path) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(file.read_bytes() if file.exists() else b"")
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file.name} cannot be read: {error}") from error


def _table(document: TOMLDocument, name: str) -> Any:
    """Our table in the document, made if need be."""
    import tomlkit

    found: Any = document
    *above, last = FILES[name]
    for part in (*above, last):
        if part not in found:
            found[part] = tomlkit.table(is_super_table=part != last)
        found = found[part]
        if not isinstance(found, dict):
            raise ConfigError(f"{name}: {'.'.join(FILES[name])} must be a table")
    return found


def _change(table: Any, key: str, value: Any) -> None:
    """Where the file says ``retention_days.failed``, that is what changes."""
    short = key.removeprefix("retention_").removesuffix("_days")
    days = table.get("retention_days")
    if isinstance(days, dict) and short in days:
        table, key = days, short
    if value is None:
        table.pop(key, None)
    else:
        table[key] = _kept(table.get(key), value)


def _kept(before: Any, value: Any) -> Any:
    """30 days stay 30, not 30.0, unless the file has a fraction there already."""
    if isinstance(value, float) and value.is_integer() and not isinstance(before, float):
        return int(value)
    return _list(before, list(value)) if isinstance(value, tuple) else value


def _list(before: Any, items: list[str]) -> list[str]:
    """The old list with what is new and without what is gone: comments inside it stay."""
    if not isinstance(before, list):
        return items
    for position in reversed(range(len(before))):
        if before[position] not in items:
            del before[position]
    before.extend(item for item in items if item not in before)
    return before if before == items else items


def _replace(file: Path, content: bytes) -> None:
    """All or nothing: a reader sees the old file or the new one."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # for the owner alone
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        if file.exists():
            shutil.copymode(file, name)
            with suppress(OSError, AttributeError):  # root must not take the file from its user
                os.chown(name, file.stat().st_uid, file.stat().st_gid)
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
