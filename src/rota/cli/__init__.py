"""The command ``rota``. A face: it asks ``operate`` and the app, and decides nothing about jobs."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from .root import root

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a glyph that the terminal lacks must not end a listing
            stream.reconfigure(errors="replace")
    root(prog_name="rota")
