"""Crontab files to rules, line by line: for an importer. Pure and bounded; runs nothing, stores nothing.

A line that cannot be used keeps its number and its error, so that the others can still be imported.
``CRON_TZ=`` sets the zone of the lines below it; other settings (MAILTO, PATH, SHELL …) are passed over.
"""

from __future__ import annotations

import re

from ...errors import InvalidSchedule
from ...model import Value
from .rules import ScheduleRule, parse

LONGEST_TEXT = 1 << 20
MOST_LINES = 10_000
LONGEST_SHOWN = 256

_SETTING = re.compile(r"\s*(?:\"([^\"=]+)\"|'([^'=]+)'|([A-Za-z_]\w*))\s*=\s*(.*?)\s*", re.ASCII | re.DOTALL)


class CrontabLine(Value, frozen=True, kw_only=True):
    """One entry: ``rule`` with its cron expression and zone, or ``error``."""

    line: int
    cron: str
    command: str = ""
    timezone: str = "UTC"
    user: str | None = None
    rule: ScheduleRule | None = None
    error: str | None = None


def from_crontab(text: str, system: bool = False, timezone: str = "UTC") -> list[CrontabLine]:
    """The entries of a crontab. ``system``: each line has a user column, as in /etc/crontab."""
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise InvalidSchedule(f"crontab: must be a text of at most {LONGEST_TEXT} characters; split it")
    lines = re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff"))
    if len(lines) > MOST_LINES:
        raise InvalidSchedule(f"crontab: has {len(lines)} lines, at most {MOST_LINES} are read; split it")
    found: list[CrontabLine] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        setting = _SETTING.fullmatch(line)
        if setting is None:
            found.append(_entry(number, line, system, timezone))
        elif (setting[1] or setting[2] or setting[3]) == "CRON_TZ":
            timezone = setting[4].strip("\"'")
    return found


def _entry(number: int, line: str, system: bool, timezone: str) -> CrontabLine:
    fields = 1 if line.lstrip().startswith("@") else 5
    words = line.split(None, fields + system)
    cron = " ".join(words[:fields])[:LONGEST_SHOWN]
    if len(words) <= fields + system:
        wanted = "five fields, a user and a command" if system else "five fields and a command"
        error = f"line {number}: is too short; write {wanted}"
        return CrontabLine(line=number, cron=cron, timezone=timezone, error=error)
    command, user = words[-1].strip(), words[fields] if system else None
    rule, fault = None, None
    try:
        rule = parse(cron=cron, timezone=timezone)
    except InvalidSchedule as refused:
        fault = f"line {number}: {refused}"
    return CrontabLine(
        line=number, cron=cron, command=command, timezone=timezone, user=user, rule=rule, error=fault
    )
