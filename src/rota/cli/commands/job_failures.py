"""``rota jobs failures``: failed jobs grouped by error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ...core.plurals import plural
from ...operate import Operations
from ...operate.requests import FailuresRequest
from ...operate.views import FailureGroup, FailureGroups
from ...terminal.text import relative_time, safe
from ..parts.job_filters import created_since_option, created_until_option, selector_fields
from ..parts.lists import Columns, ListColumn, limit_option, listing
from ..parts.request_parsing import parse_request


def _error(group: FailureGroup) -> str:
    return safe(": ".join(filter(None, (group.type, group.pattern))))[:200] or "no error was stored"


COLUMNS: Columns[FailureGroup] = (
    ListColumn("JOBS", lambda group, now: f"{group.count:,}", right=True),
    ListColumn("TASK", lambda group, now: safe(group.task), yields=4),
    ListColumn("ERROR", lambda group, now: _error(group), yields=3),
    ListColumn("FIRST", lambda group, now: relative_time(group.first_at, now), yields=1),
    ListColumn("LAST", lambda group, now: relative_time(group.last_at, now), yields=2),
    ListColumn("NEWEST JOB", lambda group, now: group.newest),
)


def _footer(found: FailureGroups, given: Mapping[str, Any]) -> str:
    """How many jobs were read, and how many groups are not shown."""
    if not found.items:
        return ""
    jobs = f"the newest {found.of:,} failed jobs" if found.more else plural(found.of, "failed job")
    hidden = found.groups - len(found.items)
    more = f" {plural(hidden, 'more group')}: raise --limit to see them." if hidden else ""
    return f"From {jobs}.{more} Show one: rota jobs show ID"


def add_failures(group: click.Group) -> None:
    """Give ``rota jobs`` the list of failures."""

    @listing(
        group,
        COLUMNS,
        name="failures",
        empty="No job has failed.",
        no_match="No failed job matches.",
        footer=_footer,
    )
    @click.option("--task", help="Only this task.")
    @click.option("--queue", help="Only this queue.")
    @click.option("--tenant", help="Only this tenant.")
    @created_since_option
    @created_until_option
    @limit_option(20)
    async def list_failures(operations: Operations, /, **given: Any) -> FailureGroups:
        """List failed jobs grouped by error, most frequent first.

        Errors that differ only in numbers and quoted names are one group.
        """
        fields = await selector_fields(operations, given)
        return await operations.jobs.failures(parse_request(FailuresRequest, **fields))
