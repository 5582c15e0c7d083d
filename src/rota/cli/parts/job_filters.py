"""The options that select jobs, for lists and for bulk actions, and a description of the selection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import click

from ...core.plurals import plural
from ...model import State
from ...operate import Operations, check_id
from ...operate.requests import JobSelector
from ...terminal.text import safe
from .options import apply_options
from .target import store_time
from .time_parsing import parse_when, resolve_when, when_option

C = TypeVar("C", bound=Callable[..., Any])


def _job_id(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return None if value is None else check_id(value)


created_since_option = when_option("since", "Created since")
created_until_option = when_option("until", "Created before")
_OPTIONS = (
    click.option("--state", multiple=True, type=click.Choice([str(s) for s in State]),
                 help="Only jobs in this state (repeatable)."),
    click.option("--task", help="Only this task."),
    click.option("--queue", help="Only this queue."),
    click.option("--tenant", help="Only this tenant."),
    click.option("--tag", help="Only jobs with this tag."),
    click.option("--key", help="Only jobs with this idempotency key."),
    click.option("--concurrency-key", metavar="KEY", help="Only jobs that count under this key of a limit."),
    click.option("--schedule", metavar="NAME", help="Only jobs created by this schedule."),
    click.option("--parent", metavar="ID", callback=_job_id, help="Only jobs created by this job."),
    click.option("--worker", metavar="ID", help="Only jobs that this worker runs or ran."),
    click.option("--error", metavar="TEXT", help="Only jobs with this text in their error."),
    click.option("--payload", "payload", multiple=True, metavar="PATH=TEXT",
                 help="Only jobs with this payload field, such as order.id=42 (repeatable)."),
    click.option("--not-task", multiple=True, metavar="TASK", help="Leave out this task (repeatable)."),
    click.option("--not-queue", multiple=True, metavar="QUEUE", help="Leave out this queue (repeatable)."),
    created_since_option,
    created_until_option,
)  # fmt: skip
NAMES = JobSelector.__struct_fields__


def filter_options(command: C) -> C:
    """Give a command the options that select jobs."""
    return apply_options(command, _OPTIONS)


def given_filters(given: Mapping[str, Any]) -> dict[str, Any]:
    """The filters that were given."""
    return {name: given[name] for name in NAMES if given[name] not in (None, ())}


async def selector_fields(operations: Operations, filters: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a ``JobSelector``: times count back from the store's own."""
    fields = dict(filters)
    for name in ("since", "until"):
        if fields.get(name) is not None:
            fields[name] = resolve_when(fields[name], await store_time(operations))
    return fields


def describe(filters: Mapping[str, Any], count: int, exact: bool, default_state: str = "") -> str:
    """``1,204 failed jobs of task send_receipt``."""
    states = " or ".join(filters.get("state", ())) or default_state
    noun = f"{states} job".strip()
    number = plural(count, noun) if exact else f"{count:,} or more {noun}s"
    parts = [f"{words} {_shown(name, filters[name])}" for name, words in _PHRASES if name in filters]
    return " ".join((number, *parts))


_PHRASES = (
    ("task", "of task"),
    ("queue", "in queue"),
    ("tenant", "of tenant"),
    ("tag", "with tag"),
    ("key", "with idempotency key"),
    ("concurrency_key", "with concurrency key"),
    ("schedule", "of schedule"),
    ("parent", "created by job"),
    ("worker", "of worker"),
    ("error", "with the error"),
    ("payload", "with the payload"),
    ("not_task", "not of task"),
    ("not_queue", "not in queue"),
    ("since", "created since"),
    ("until", "created before"),
)


def _shown(name: str, value: Any) -> str:
    if name in ("since", "until") and isinstance(parse_when(value), timedelta):
        return f"{safe(value)} ago"
    return safe(" or ".join(value) if isinstance(value, tuple) else value)
