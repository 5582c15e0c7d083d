"""Options that many commands take, each defined once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

C = TypeVar("C", bound=Callable[..., Any])

ABSENT = (None, (), False)

yes_option = click.option("--yes", is_flag=True, help="Skip the prompt.")


def json_option(*fields: str, what: str = "") -> Callable[[C], C]:
    """``--json``: of named fields, or of one thing."""
    shape = "{" + ", ".join(f'"{field}": …' for field in fields) + "}" if fields else what
    return click.option("--json", "as_json", is_flag=True, help=f"Print JSON: {shape}.")


def given_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given; the others are None, empty or a flag that is off. 0 is a value."""
    return {name: value for name, value in values.items() if not any(value is absent for absent in ABSENT)}


def apply_options(command: C, options: tuple[Any, ...]) -> C:
    """The command with these options, in this order."""
    for option in reversed(options):
        command = option(command)
    return command
