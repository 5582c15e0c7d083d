"""The options that choose jobs, for listings and for acts on many; and what was chosen, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import click

from ...model import State
from ...operate import Operations, check_id
from ...operate.requests import JobSelector
from ...terminal.text import plural, safe
from .target import store_time
from .time_parsing import parse_when

C = TypeVar("C", bound=Callable[..., Any])


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        parse_when(value)
    return value


def _job_id(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return None if value is None else check_id(value)


def time_filter(name: str, words: str) -> Callable[[C], C]:
    """A flag for a time: an instant, or how long ago."""
    return click.option(
        f"--{name}", callback=_moment, metavar="TIME", help=f"{words}: 2h ago, or an instant."
    )


_OPTIONS = (
    click.option("--state", multiple=True, type=click.Choice([str(s) for s in State]), help="Only these."),
    click.option("--task", help="Only this task."),
    click.option("--queue", help="Only this queue."),
    click.option("--tenant", help="Only this tenant."),
    click.option("--tag", help="Only jobs with this tag."),
    click.option("--key", help="Only jobs with this key."),
    click.option("--schedule", metavar="NAME", help="Only jobs that this schedule made."),
    click.option("--parent", metavar="ID", callback=_job_id, help="Only jobs that this one made."),
    click.option("--worker", metavar="ID", help="Only jobs that this worker runs or ran."),
    click.option("--error", metavar="TEXT", help="Only jobs with this in their error."),
    click.option("--payload", "payload", multiple=True, metavar="PATH=TEXT",
                 help="Only jobs with this in their payload, such as order.id=42; again for several."),
    click.option("--not-task", multiple=True, metavar="TASK", help="Not this task; again for several."),
    click.option("--not-queue", multiple=True, metavar="QUEUE", help="Not this queue; again for several."),
    time_filter("since", "Made since"),
    time_filter("until", "Made before"),
)  # fmt: skip
NAMES = JobSelector.__struct_fields__


def filter_options(command: C) -> C:
    """Give a command the options that choose jobs."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_filters(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was said of which jobs; empty: nothing was."""
    return {name: given[name] for name in NAMES if given[name] not in (None, ())}


async def selector_fields(operations: Operations, said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a ``JobMatch``: times are counted back from the store's own."""
    fields = dict(said)
    for name in ("since", "until"):
        if name in said:
            found = parse_when(said[name])
            fields[name] = found if isinstance(found, datetime) else await store_time(operations) - found
    return fields


def describe(said: Mapping[str, Any], count: int, exact: bool, usual: str = "") -> str:
    """``1,204 failed jobs of task send_receipt``; ``usual`` stands for states that were not said."""
    states = " or ".join(said.get("state", ())) or usual
    noun = f"{states} job".strip()
    number = plural(count, noun) if exact else f"{count:,} or more {noun}s"
    parts = [f"{words} {_shown(name, said[name])}" for name, words in _WORDS if name in said]
    return " ".join((number, *parts))


_WORDS = (
    ("task", "of task"),
    ("queue", "in queue"),
    ("tenant", "of tenant"),
    ("tag", "with tag"),
    ("key", "with key"),
    ("schedule", "of schedule"),
    ("parent", "made by job"),
    ("worker", "of worker"),
    ("error", "with the error"),
    ("payload", "with the payload"),
    ("not_task", "not of task"),
    ("not_queue", "not in queue"),
    ("since", "made since"),
    ("until", "made before"),
)


def _shown(name: str, value: Any) -> str:
    if name in ("since", "until") and isinstance(parse_when(value), timedelta):
        return f"{safe(value)} ago"
    return safe(" or ".join(value) if isinstance(value, tuple) else value)
