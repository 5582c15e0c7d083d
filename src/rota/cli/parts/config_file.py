"""Sets one key in ``rota.toml`` or ``pyproject.toml`` and keeps the rest of the file.

Owns the writing of configuration files. Only the owner can read a file that it creates.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config.sources import FILES, table_of
from ...errors import ConfigError
from .atomic_file import atomic_file
from .exit_codes import CommandFailed

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def in_force(folder: Path) -> Path:
    """The file that rota reads; ``rota.toml`` if there is none yet."""
    files = [folder / name for name in FILES]
    return next((file for file in files if table_of(file) is not None), files[0])


def write(file: Path, key: str, value: Any) -> None:
    """Set the key, or remove it if the value is None."""
    document = _read(file)
    _change(_table(document, file.name), key, value)
    with atomic_file(file.resolve(), keep_mode=True) as out:  # a link stays a link
        out.write(document.as_string())


def _read(file: Path) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(file.read_bytes() if file.exists() else b"")
    except OSError as error:
        raise CommandFailed(f"cannot read {str(file)!r}: {error.strerror}") from error
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file.name} cannot be read: {error}") from error


def _table(document: TOMLDocument, name: str) -> Any:
    """rota's table in the document, created if missing."""
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
    """Change the key; if the file has ``retention_days.failed``, change that spelling."""
    short = key.removeprefix("retention_").removesuffix("_days")
    days = table.get("retention_days")
    if isinstance(days, dict) and short in days:
        table, key = days, short
    if value is None:
        table.pop(key, None)
    else:
        table[key] = _kept(table.get(key), value)


def _kept(before: Any, value: Any) -> Any:
    """Write 30 days as 30, not 30.0, unless the file already has a fraction."""
    if isinstance(value, float) and value.is_integer() and not isinstance(before, float):
        return int(value)
    return _list(before, list(value)) if isinstance(value, tuple) else value


def _list(before: Any, items: list[str]) -> list[str]:
    """The old list with items added and removed, so that comments inside it stay."""
    if not isinstance(before, list):
        return items
    for position in reversed(range(len(before))):
        if before[position] not in items:
            del before[position]
    before.extend(item for item in items if item not in before)
    return before if before == items else items
