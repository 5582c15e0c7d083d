"""The options that describe a schedule, and errors that name the option they belong to.

Values are passed on as typed: the code that checks a program's own schedules checks them too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from ...errors import InvalidSchedule, OptionError, PayloadError, RotaError
from .job_options import PAYLOAD_HELP, read_payload
from .options import apply_options

C = TypeVar("C", bound=Callable[..., Any])

RULES = ("cron", "every", "at")
CLEARABLE = (
    "start-at", "until", "queue", "priority", "max-attempts", "timeout", "missed-window", "calendar",
)  # fmt: skip


def _payload(ctx: click.Context, param: click.Parameter, value: str | None) -> Mapping[str, Any] | None:
    return None if value is None else read_payload(ctx, param, value)


_RULE = (
    click.option("--cron", metavar="EXPRESSION",
                 help='Cron expression: "0 8 * * 1-5", 6 fields with seconds first, or @daily.'),
    click.option("--every", metavar="DURATION", help="Interval: 90, 15m, 1h30m."),
    click.option("--at", metavar="TIME", help="Run once, at this time: 2030-01-31T08:00Z."),
    click.option("--timezone", metavar="ZONE", help="Time zone, such as Europe/Berlin.  [default: UTC]"),
    click.option("--start-at", metavar="TIME", help="First possible time; an interval counts from here."),
    click.option("--until", metavar="TIME", help="Last possible time."),
    click.option("--jitter", metavar="DURATION",
                 help="Start up to this much later, to spread load. Fixed per schedule."),
)  # fmt: skip
_REST = (
    click.option("--payload", callback=_payload, help=PAYLOAD_HELP),
    click.option("--enabled/--disabled", default=None, help="Enable or disable it.  [default: enabled]"),
    click.option("--queue", help="Queue for its jobs.  [default: the task's]"),
    click.option("--priority", type=int, help="Priority of its jobs, higher first.  [default: the task's]"),
    click.option("--max-attempts", type=int, help="Attempts per job, 1 to 100.  [default: the task's]"),
    click.option("--timeout", metavar="DURATION", help="Time limit per attempt.  [default: the task's]"),
    click.option("--missed", metavar="POLICY",
                 help="Catch up missed runs: skip, latest or all.  [default: latest]"),
    click.option("--missed-cap", type=int, help="Catch up at most this many.  [default: 100]"),
    click.option("--missed-window", metavar="DURATION", help="Do not catch up runs older than this."),
    click.option("--overlap", metavar="POLICY",
                 help="If the previous run is not finished: allow, skip, queue or cancel_previous.  "
                 "[default: allow]"),
    click.option("--calendar", metavar="NAME", help="Do not run on the dates of this calendar."),
    click.option("--calendar-mode", metavar="MODE",
                 help="On those dates: skip or next_working_day.  [default: skip]"),
    click.option("--description", help="Description for people."),
)  # fmt: skip
FIELDS = (*RULES, "timezone", "start_at", "until", "jitter", "payload", "enabled", "queue", "priority",
          "max_attempts", "timeout", "missed", "missed_cap", "missed_window", "overlap", "calendar",
          "calendar_mode", "description", "name", "tenant", "task")  # fmt: skip
FLAGS = {
    **{name: f"--{name.replace('_', '-')}" for name in FIELDS},
    "cap": "--missed-cap",
    "window": "--missed-window",
}


def rule_options(command: C) -> C:
    """Give a command the options of a rule."""
    return apply_options(command, _RULE)


def schedule_options(command: C) -> C:
    """Give a command every option of a schedule except its name, tenant and task."""
    return apply_options(command, (*_RULE, *_REST))


def new_tenant_option(command: C) -> C:
    """For a command that makes schedules."""
    return click.option("--tenant", default="default", show_default=True, help="Tenant.")(command)


def tenant_option(command: C) -> C:
    """For a command that takes the NAME of a schedule: it may be ``acme/invoice``, as lists print it."""
    return click.option("--tenant", help="Tenant of NAME, which may also be TENANT/NAME.")(command)


def given_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in given.items() if value is not None}


def one_rule(given: Mapping[str, Any], *, needed: bool) -> None:
    """Exactly one of --cron, --every, --at; or none where none is needed."""
    named = [FLAGS[name] for name in RULES if given.get(name) is not None]
    if len(named) > 1:
        raise click.UsageError(f"{' and '.join(named)} cannot be combined: a schedule has one rule.")
    if needed and not named:
        raise click.UsageError("no rule: pass --cron, --every or --at.")


@contextmanager
def naming_flags() -> Iterator[None]:
    """Errors in a schedule become usage errors that name the option."""
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
    """The column of a cron expression that the error is about, counted from 1."""
    found = _COLUMN.search(str(error))
    return int(found["column"]) if found else None


def _in_flags(text: str) -> str:
    """``every='15m'`` as typed on the command line: ``--every '15m'``."""

    def flag(match: re.Match[str]) -> str:
        return FLAGS[match[1]] + ("" if match[2] else " ") + match[2]

    return re.sub(rf"\b({'|'.join(FLAGS)})=([\s,;]?)", flag, text)


def _pointed(text: str) -> str:
    """On a terminal: the cron expression on its own line, with a caret under the error."""
    found = _COLUMN.match(text)
    if found is None or not found["text"].isprintable() or not sys.stderr.isatty():
        return text
    caret = " " * (int(found["column"]) - 1) + "^"
    return f"{text[found.end() :]}\n\n    {found['text']}\n    {caret}"
