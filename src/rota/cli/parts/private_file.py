"""A file for its owner's eyes, which is there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .exit_codes import CommandFailed


@contextmanager
def private_file(name: str) -> Iterator[IO[str]]:
    """Write it; it takes the place of an older one when the block has ended well. Mode 0600."""
    path = Path(name)
    try:
        handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # is 0600 already
    except OSError as error:
        raise CommandFailed(f"cannot write {name!r}: {error.strerror}") from error
    try:
        with open(handle, "w", encoding="utf-8") as file:
            yield file
        os.replace(part, path)
    except BaseException as error:
        Path(part).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise CommandFailed(f"cannot write {name!r}: {error.strerror}") from error
        raise
