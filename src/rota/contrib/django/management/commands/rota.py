"""``manage.py rota …``: rota's command line, with the app that the setting ROTA_APP names."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from .....cli.root import root
from .....errors import ConfigError
from ...apps import reference


class Command(BaseCommand):
    help = "Run a command of rota, such as: rota worker, rota up, rota jobs list."
    requires_system_checks: Sequence[str] = ()

    def run_from_argv(self, argv: list[str]) -> None:
        try:
            os.environ.setdefault("ROTA_APP", reference())
        except ConfigError as error:
            print(f"rota: {error}", file=sys.stderr)
            sys.exit(2)
        root.main(args=_without_djangos(argv[2:]), prog_name=f"{Path(argv[0]).name} {argv[1]}")

    def handle(self, *args: Any, **options: Any) -> None:
        os.environ.setdefault("ROTA_APP", reference())
        root.main(args=[str(arg) for arg in args], prog_name="rota", standalone_mode=False)

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("args", nargs=argparse.REMAINDER, help="as after the command rota")


def _without_djangos(args: list[str]) -> list[str]:
    """The arguments without --settings and --pythonpath, which Django has followed before it came here."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--settings")
    parser.add_argument("--pythonpath")
    return parser.parse_known_args(args)[1]
