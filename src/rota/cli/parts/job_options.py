"""Job options on the command line, checked by the same code as those of a program."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from ...app import Rota
from ...core.jobs.options import options
from ...errors import OptionError
from ...terminal.text import safe

PAYLOAD_HELP = "Arguments as JSON, @FILE, or - for stdin."


def read_payload(ctx: click.Context, param: click.Parameter, value: str) -> Mapping[str, Any]:
    """JSON text, ``@file`` or ``-`` becomes the job's arguments."""
    try:
        arguments = msgspec.json.decode(_text(value))
    except OSError as error:
        raise click.BadParameter(f"cannot read {value[1:]!r}: {error.strerror}", ctx, param) from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise click.BadParameter(f"not valid JSON: {error}", ctx, param) from error
    if not isinstance(arguments, dict):
        raise click.BadParameter('must be a JSON object of arguments, such as {"order_id": 42}', ctx, param)
    return arguments


def _text(value: str) -> str | bytes:
    if value == "-":
        return sys.stdin.buffer.read()
    return Path(value[1:]).read_bytes() if value.startswith("@") else value


def checked(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that checks the value by the rules of the job option of this name."""

    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        try:
            options({name: None if value == () else value})
        except OptionError as error:
            raise click.BadParameter(str(error), ctx, param) from error
        return value

    return check


def note_unknown_task(app: Rota, task: str) -> None:
    """Print a note if the app of --app does not have the task."""
    if app.registry.get(task) is None and app.registry.names:
        near = difflib.get_close_matches(task, app.registry.names, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        click.echo(f"note: the app has no task {safe(task)!r}; another worker must have it.{hint}", err=True)
