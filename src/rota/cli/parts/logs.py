"""Logs on stderr: text for people, one JSON object per line for programs.

Records may quote stored text, so each is one line without control characters; in text form a
traceback may follow. A record made inside a task, or about a job, names the job, and secrets of
that job's payload are redacted.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from ...runtime.events import about
from ...tasks.current import CURRENT
from ...terminal.text import json_text, safe

if TYPE_CHECKING:
    from ...app import Rota
    from .target import Target

C = TypeVar("C", bound=Callable[..., Any])

LEVELS = ("debug", "info", "warning", "error")
Format = Literal["text", "json"]


def log_options(command: C) -> C:
    """Give a command ``--log-level`` and ``--log-format``."""
    level = click.option(
        "--log-level", type=click.Choice(LEVELS), help="Log level.  [default: log_level, info]"
    )
    form = click.option(
        "--log-format", type=click.Choice(("text", "json")),
        help="Log format.  [default: log_format, or text on a terminal and json elsewhere]",
    )  # fmt: skip
    return level(form(command))


def set_up_for(target: Target, level: str | None, form: Format | None) -> tuple[Rota, str, Format]:
    """Open the app with these logs; its settings fill in what was not given."""
    set_up(level or "info", form)  # importing the app may log
    app = target.open()
    chosen_level = level or app.settings.log_level
    chosen_form: Format = form or app.settings.log_format or default_format()
    set_up(chosen_level, chosen_form)
    return app, chosen_level, chosen_form


def set_up(level: str = "info", form: Format | None = None) -> None:
    """Send all log records of this program to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLogFormatter() if (form or default_format()) == "json" else TextLogFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def default_format() -> Format:
    return "text" if sys.stderr.isatty() else "json"


class TextLogFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone()
        line = f"{at:%H:%M:%S} {record.levelname.lower():<7} {_message(record)}"
        trace = _trace(self, record)
        return line if trace is None else f"{line}\n{trace}"


class JsonLogFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **_job(record),
        }
        if (trace := _trace(self, record)) is not None:
            line["traceback"] = trace
        return json_text(line)


def _message(record: logging.LogRecord) -> str:
    return safe(_redacted(record.getMessage()))


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str | None:
    if not record.exc_info:
        return None
    return safe(_redacted(formatter.formatException(record.exc_info)), lines=True)


def _job(record: logging.LogRecord) -> dict[str, Any]:
    """The job that the record is about, or inside whose task it was logged."""
    if not isinstance(fields := getattr(record, "rota", None), dict):
        context = CURRENT.get()
        fields = about(context.job, context.worker)["rota"] if context is not None else {}
    return {name: safe(value) if isinstance(value, str) else value for name, value in fields.items()}


def _redacted(text: str) -> str:
    context = CURRENT.get()
    return text if context is None else context.redact(text)
