"""Text from a file that the user names."""

from __future__ import annotations

import sys
from pathlib import Path

from .exit_codes import CommandFailed


def read_text(file: str) -> str:
    """The text of the file; ``-`` is standard input."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode()
    except OSError as error:
        raise CommandFailed(f"cannot read {file!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{file!r} is not UTF-8 text: {error.reason} at byte {error.start}") from error
