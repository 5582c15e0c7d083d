"""``manage.py rota …``: rota's command line, with the app that the setting ROTA_APP names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from .....cli.root import root
from ...apps import reference


class Command(BaseCommand):
    help = "Run a command of rota, such as: rota worker, rota up, rota jobs list."
    requires_system_checks: Sequence[str] = ()

    def run_from_argv(self, argv: list[str]) -> None:
        os.environ.setdefault("ROTA_APP", reference())
        root.main(args=argv[2:], prog_name=f"{Path(argv[0]).name} {argv[1]}")

    def handle(self, *args: Any, **options: Any) -> None:
        os.environ.setdefault("ROTA_APP", reference())
        root.main(args=[str(arg) for arg in args], prog_name="rota", standalone_mode=False)

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("args", nargs="*", help="as after the command rota")
