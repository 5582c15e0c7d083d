"""``rota jobs``: list, show, why, update. Enqueueing, failures and bulk actions have their own modules."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from ...core.jobs.why import Why
from ...model import Page
from ...operate import Operations, check_id
from ...operate.requests import JobsRequest, UpdateJobRequest
from ...operate.views import JobView
from ...terminal.text import json_text, relative_time, safe, state, style
from ..parts import job_detail
from ..parts.each import act_on_each
from ..parts.exit_codes import exit_if_failed
from ..parts.job_columns import JOB_COLUMNS
from ..parts.job_filters import filter_options, given_filters, selector_fields
from ..parts.job_options import checked
from ..parts.lists import listing
from ..parts.options import json_option
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.time_parsing import parse_duration, parse_time
from .job_bulk import cancel, checked_ids, delete, job_line, retry
from .job_enqueue import enqueue
from .job_failures import add_failures


@click.group()
def jobs() -> None:
    """List, show, enqueue, retry, cancel, update and delete jobs."""


@listing(
    jobs,
    JOB_COLUMNS,
    paged=True,
    empty="No jobs yet. Enqueue one from your program with task.enqueue(…), or from here:\n"
    '  rota jobs enqueue TASK --payload \'{"name": "value"}\'\n'
    "Or try the demo: rota demo",
    no_match="No job matches. Without filters: rota jobs list",
)
@filter_options
async def list_jobs(operations: Operations, /, limit: int, cursor: str | None, **given: Any) -> Page[JobView]:
    """List jobs, newest first."""
    fields = await selector_fields(operations, given_filters(given))
    return await operations.jobs.list(parse_request(JobsRequest, **fields, limit=limit, cursor=cursor))


# --- show and why --------------------------------------------------------------------------------


@jobs.command()
@click.argument("job_id", metavar="ID")
@json_option(what="the job with its attempts")
@target_options
@pass_target
def show(target: Target, job_id: str, as_json: bool) -> None:
    """Show one job: payload, output, error, attempts and logs."""
    check_id(job_id)
    detail = target.operations(lambda operations: job_detail.gather(operations, job_id))
    click.echo(json_text(job_detail.as_plain(detail), indent=2) if as_json else job_detail.as_text(detail))


@jobs.command()
@click.argument("job_id", metavar="ID")
@json_option(what="the reasons")
@target_options
@pass_target
def why(target: Target, job_id: str, as_json: bool) -> None:
    """Explain why a job is not running.

    Reasons are in the order in which they must be cleared, each with its remedy.
    """
    checked_id = check_id(job_id)

    async def explain(operations: Operations) -> tuple[Why, datetime]:
        return await operations.jobs.why(checked_id), await store_time(operations)

    found, now = target.operations(explain)
    click.echo(json_text(found, indent=2) if as_json else _why_text(found, now))


def _why_text(found: Why, now: datetime) -> str:
    lines = [f"{state(found.state)}  {found.job}"]
    for reason in found.reasons:
        clears = f" ({relative_time(reason.clears_at, now)})" if reason.clears_at is not None else ""
        lines.append(f"  {style('●', 'yellow')} {safe(reason.text)}{clears}")
        lines += [f"    {safe(reason.remedy)}"] if reason.remedy else []
    if found.fine:
        lines.append(f"  {style('✓', 'green')} {safe(found.fine[0].upper() + found.fine[1:])}.")
    if found.likely_start_at is not None:
        guess = " (an estimate)" if found.is_estimate else ""
        lines.append(f"  Likely to start {relative_time(found.likely_start_at, now)}{guess}.")
    return "\n".join(lines)


# --- update --------------------------------------------------------------------------------------


@jobs.command()
@click.argument("job_ids", metavar="ID…", nargs=-1, required=True)
@click.option("--now", "at_once", is_flag=True, help="Make it due now.")
@click.option("--at", "run_at", type=parse_time, callback=checked("run_at"), metavar="TIME",
              help="Make it due at this time: 2030-01-31T08:00Z.")  # fmt: skip
@click.option("--delay", type=parse_duration, callback=checked("delay"), metavar="DURATION",
              help="Make it due after this long: 90, 15m, 1h30m.")  # fmt: skip
@click.option("--priority", type=int, callback=checked("priority"), help="Set its priority, higher first.")
@click.option("--queue", callback=checked("queue"), help="Move it to this queue.")
@target_options
@pass_target
def update(
    target: Target,
    job_ids: tuple[str, ...],
    at_once: bool,
    run_at: datetime | None,
    delay: float | None,
    priority: int | None,
    queue: str | None,
) -> None:
    """Change the due time, priority or queue of queued jobs."""
    due_options = {"--now": at_once or None, "--at": run_at, "--delay": delay}
    given = [flag for flag, value in due_options.items() if value is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} cannot be combined.")
    if not given and priority is None and queue is None:
        raise click.UsageError("nothing to change: pass --now, --at, --delay, --priority or --queue.")

    async def act(operations: Operations) -> int:
        now = await store_time(operations)
        due = run_at if delay is None else now + timedelta(seconds=delay)
        request = parse_request(UpdateJobRequest, now=at_once, run_at=due, priority=priority, queue=queue)

        async def one(job_id: str) -> str:
            job = await operations.jobs.move(job_id, request)
            note = f"due {relative_time(job.run_at, now)}, priority {job.priority}, queue {safe(job.queue)}"
            return job_line(job, note)

        return await act_on_each(ids, one)

    ids = checked_ids(job_ids)
    exit_if_failed(target.operations(act))


for command in (enqueue, retry, cancel, delete):
    jobs.add_command(command)
add_failures(jobs)
