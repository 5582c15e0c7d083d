"""The flags that describe a schedule, and its errors told by the flag they belong to.

Values are passed on as they were typed: what they mean is checked by the same code that checks a
program's own schedules, and only named here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from ...errors import InvalidSchedule, OptionError, PayloadError, RotaError
from ..commands.enqueue import read_payload

C = TypeVar("C", bound=Callable[..., Any])

RULES = ("cron", "every", "at")
CLEARABLE = (
    "start-at", "until", "queue", "priority", "max-attempts", "timeout", "missed-window", "calendar",
)  # fmt: skip


def _payload(ctx: click.Context, param: click.Parameter, value: str | None) -> Mapping[str, Any] | None:
    return None if value is None else read_payload(ctx, param, value)


_RULE = (
    click.option("--cron", metavar="TEXT", help="5 fields, 6 with seconds first, or @daily and family."),
    click.option("--every", metavar="LENGTH", help="An interval: 90, 15m, 1h30m."),
    click.option("--at", metavar="INSTANT", help="One instant: 2030-01-31T08:00Z."),
    click.option("--timezone", metavar="ZONE", help="IANA name, such as Europe/Berlin.  [default: UTC]"),
    click.option("--start-at", metavar="INSTANT", help="Not before; an interval is counted from here."),
    click.option("--until", metavar="INSTANT", help="Not after."),
    click.option("--jitter", metavar="LENGTH", help="Spread: later by up to this, the same each time."),
)
_REST = (
    click.option("--payload", callback=_payload, help="Arguments as JSON, @FILE, or - for stdin."),
    click.option("--enabled/--disabled", default=None, help="Whether it fires.  [default: enabled]"),
    click.option("--queue", help="Where its jobs wait.  [default: as the task says; so below]"),
    click.option("--priority", type=int, help="Of its jobs: larger first."),
    click.option("--max-attempts", type=int, help="Of its jobs: 1 to 100."),
    click.option("--timeout", metavar="LENGTH", help="For each attempt."),
    click.option("--missed", help="skip, latest or all of the fires missed.  [default: latest]"),
    click.option("--missed-cap", type=int, help="Catch up with so many at most.  [default: 100]"),
    click.option("--missed-window", metavar="LENGTH", help="Never catch up with older ones."),
    click.option("--overlap", help="allow, skip, queue or cancel_previous.  [default: allow]"),
    click.option("--calendar", metavar="NAME", help="Do not run on the dates of this calendar."),
    click.option("--calendar-mode", help="skip or next_working_day.  [default: skip]"),
    click.option("--description", help="For people."),
)
FIELDS = (*RULES, "timezone", "start_at", "until", "jitter", "payload", "enabled", "queue", "priority",
          "max_attempts", "timeout", "missed", "missed_cap", "missed_window", "overlap", "calendar",
          "calendar_mode", "description", "name", "tenant", "task")  # fmt: skip
FLAGS = {
    **{name: f"--{name.replace('_', '-')}" for name in FIELDS},
    "cap": "--missed-cap",
    "window": "--missed-window",
}


def rule_options(command: C) -> C:
    """Give a command the flags of a rule."""
    return _with(_RULE, command)


def schedule_options(command: C) -> C:
    """Give a command every flag of a schedule but its name, tenant and task."""
    return _with((*_RULE, *_REST), command)


def tenant_option(command: C) -> C:
    return click.option("--tenant", default="default", show_default=True, help="Whose it is.")(command)


def _with(options: tuple[Any, ...], command: C) -> C:
    for option in reversed(options):
        command = option(command)
    return command


def chosen(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was said; None means that it was not."""
    return {name: value for name, value in given.items() if value is not None}


def one_rule(given: Mapping[str, Any], *, needed: bool) -> None:
    """Exactly one of --cron, --every, --at; or none where none is needed."""
    named = [FLAGS[name] for name in RULES if given.get(name) is not None]
    if len(named) > 1:
        raise click.UsageError(f"{' and '.join(named)} were given: a schedule has one rule, keep one.")
    if needed and not named:
        raise click.UsageError("no rule was given: say --cron, --every or --at.")


@contextmanager
def naming_flags() -> Iterator[None]:
    """What is wrong with a schedule becomes a usage error that names the flag."""
    try:
        yield
    except PayloadError as error:
        raise click.BadParameter(str(error), param_hint="'--payload'") from error
    except (InvalidSchedule, OptionError) as error:
        raise by_flag(error) from error


_FIELD = re.compile(r"(\w+)(?:=|: )")
_COLUMN = re.compile(r"'(?P<text>.*)': (?:[a-z ]+, )?column (?P<column>\d+): ", re.DOTALL)


def by_flag(error: RotaError) -> click.UsageError:
    text = str(error)
    field = _FIELD.match(text)
    flag = FLAGS.get(field[1]) if field else None
    if field is None or flag is None:
        return click.UsageError(_in_flags(text).replace("a later at or until", "a later --at or --until"))
    return click.BadParameter(_pointed(_in_flags(text[field.end() :])), param_hint=f"'{flag}'")


def column_of(error: RotaError) -> int | None:
    """The column of a cron text that the error is about, counted from 1."""
    found = _COLUMN.search(str(error))
    return int(found["column"]) if found else None


def _in_flags(text: str) -> str:
    """``every='15m'`` as one would type it here: ``--every '15m'``."""

    def flag(match: re.Match[str]) -> str:
        return FLAGS[match[1]] + ("" if match[2] else " ") + match[2]

    return re.sub(rf"\b({'|'.join(FLAGS)})=([\s,;]?)", flag, text)


def _pointed(text: str) -> str:
    """On a terminal: the cron text on a line of its own, and a caret under what is wrong with it."""
    found = _COLUMN.match(text)
    if found is None or not found["text"].isprintable() or not sys.stderr.isatty():
        return text
    caret = " " * (int(found["column"]) - 1) + "^"
    return f"{text[found.end() :]}\n\n    {found['text']}\n    {caret}"
