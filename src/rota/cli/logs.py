"""What a worker logs to stderr: text for people, one JSON object per line for programs.

Records may quote stored text, so a record is always one line, apart from the traceback that follows
it in text form, and carries no control characters.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Literal

from .text import json_text, safe

LEVELS = ("debug", "info", "warning", "error")
Format = Literal["text", "json"]


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
        line = f"{at:%H:%M:%S} {record.levelname.lower():<7} {safe(record.getMessage())}"
        return f"{line}\n{self._trace(record)}" if record.exc_info else line

    def _trace(self, record: logging.LogRecord) -> str:
        assert record.exc_info is not None
        return safe(self.formatException(record.exc_info), lines=True)


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json_text(told)
