"""The command ``rota``: a client of ``operate`` and the app that decides nothing about jobs."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from .root import root

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a character that the terminal lacks must not end a list
            stream.reconfigure(errors="replace")
    root(prog_name="rota")
