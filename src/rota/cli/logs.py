"""What a worker logs to stderr: text for people, one JSON object per line for programs.

Records may quote stored text, so a record is always one line, apart from the traceback that follows
it in text form, and carries no control characters. A record made inside a task, or about a job, says
which; the secrets of that job's payload are struck out of it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from ..runtime.events import about
from ..tasks.current import CURRENT
from .text import json_text, safe

if TYPE_CHECKING:
    from ..app import Rota
    from .target import Target

C = TypeVar("C", bound=Callable[..., Any])

LEVELS = ("debug", "info", "warning", "error")
Format = Literal["text", "json"]


def log_options(command: C) -> C:
    """Give a command ``--log-level`` and ``--log-format``."""
    level = click.option("--log-level", type=click.Choice(LEVELS), help="[default: log_level, info]")
    form = click.option(
        "--log-format", type=click.Choice(("text", "json")),
        help="[default: log_format, or text on a terminal and json elsewhere]",
    )  # fmt: skip
    return level(form(command))


def set_up_for(target: Target, level: str | None, form: Format | None) -> tuple[Rota, str, Format]:
    """Open the app with logs as asked for; what was left open, its settings say."""
    set_up(level or "info", form)  # importing the app may have something to say
    app = target.open()
    chosen_level = level or app.settings.log_level
    chosen_form: Format = form or app.settings.log_format or usual()
    set_up(chosen_level, chosen_form)
    return app, chosen_level, chosen_form


def set_up(level: str = "info", form: Format | None = None) -> None:
    """Send the records of the whole program to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if (form or usual()) == "json" else Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def usual() -> Format:
    return "text" if sys.stderr.isatty() else "json"


class Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone()
        line = f"{at:%H:%M:%S} {record.levelname.lower():<7} {_message(record)}"
        trace = _trace(self, record)
        return line if trace is None else f"{line}\n{trace}"


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **_job(record),
        }
        if (trace := _trace(self, record)) is not None:
            told["traceback"] = trace
        return json_text(told)


def _message(record: logging.LogRecord) -> str:
    return safe(_discreet(record.getMessage()))


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str | None:
    if not record.exc_info:
        return None
    return safe(_discreet(formatter.formatException(record.exc_info)), lines=True)


def _job(record: logging.LogRecord) -> dict[str, Any]:
    """The job that the record is about, or inside whose task it was made."""
    if not isinstance(said := getattr(record, "rota", None), dict):
        context = CURRENT.get()
        said = about(context.job, context.worker)["rota"] if context is not None else {}
    return {name: safe(value) if isinstance(value, str) else value for name, value in said.items()}


def _discreet(text: str) -> str:
    context = CURRENT.get()
    return text if context is None else context.redact(text)
