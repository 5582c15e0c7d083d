"""Files that are replaced whole or not at all, and that only their owner can read unless they exist."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from .exit_codes import CommandFailed


@contextmanager
def atomic_file(path: Path, *, keep_mode: bool = False) -> Iterator[IO[str]]:
    """Write the file; it replaces an older one when the block ends without an error.

    Mode 0600, or with ``keep_mode`` the mode and owner of the file it replaces.
    """
    try:
        handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # is 0600 already
        try:
            with open(handle, "w", encoding="utf-8", newline="") as file:
                yield file
            if keep_mode and path.exists():
                _copy_owner(path, part)
            os.replace(part, path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CommandFailed(f"cannot write {str(path)!r}: {error.strerror}") from error


def _copy_owner(path: Path, part: str) -> None:
    shutil.copymode(path, part)
    with suppress(OSError, AttributeError):  # root must not take the file from its user
        os.chown(part, path.stat().st_uid, path.stat().st_gid)
