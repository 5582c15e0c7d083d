"""``rota jobs``: list, show, why, move. Enqueueing, and acts on many, have modules of their own."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from ...core.jobs.why import Why
from ...model import Page
from ...operate import Operations, check_id
from ...operate.requests import MOST, JobsRequest, UpdateJobRequest
from ...operate.views import JobView
from ...terminal.text import json_text, relative_time, safe, state, style
from ..parts import job_detail
from ..parts.exit_codes import FAILED
from ..parts.job_detail import show_jobs
from ..parts.job_filters import filter_options, given_filters, selector_fields
from ..parts.paging import echo_next_page
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.time_parsing import parse_duration, parse_time
from ..parts.watch_option import watchable
from . import job_bulk
from .enqueue import checked, enqueue
from .job_failures import failures


@click.group()
def jobs() -> None:
    """List, show, enqueue, retry, cancel, move and delete jobs."""


for command in (enqueue, failures, job_bulk.retry, job_bulk.cancel, job_bulk.delete):
    jobs.add_command(command)


# --- list ----------------------------------------------------------------------------------------


@jobs.command("list")
@watchable
@filter_options
@click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="At most so many.")
@click.option("--cursor", help="Go on where a page ended.")
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": cursor or null}.')
@target_options
@pass_target
@click.pass_context
def list_(
    ctx: click.Context, target: Target, /, limit: int, cursor: str | None, as_json: bool, **given: Any
) -> None:
    """Jobs, newest first."""
    said = given_filters(given)

    async def look(operations: Operations) -> tuple[Page[JobView], datetime]:
        ask = parse_request(
            JobsRequest, **await selector_fields(operations, said), limit=limit, cursor=cursor
        )
        return await operations.jobs.list(ask), await store_time(operations)

    page, now = target.operations(look)
    if as_json:
        click.echo(json_text(page))
    elif not page.items:
        click.echo(_nothing(filtered=bool(said)))
    else:
        show_jobs(page.items, now)
        echo_next_page(ctx, target, page.next)


def _nothing(*, filtered: bool) -> str:
    if filtered:
        return "No job matches. Without filters: rota jobs list"
    return (
        "No jobs yet. Enqueue one from your program with task.enqueue(…), or from here:\n"
        '  rota jobs enqueue TASK --payload \'{"name": "value"}\'\n'
        "Or watch some: rota demo"
    )


# --- show and why --------------------------------------------------------------------------------


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="The job with its attempts as one object.")
@target_options
@pass_target
def show(target: Target, job_id: str, as_json: bool) -> None:
    """Everything about one job."""
    check_id(job_id)
    page = target.operations(lambda operations: job_detail.gather(operations, job_id))
    click.echo(json_text(job_detail.as_plain(page), indent=2) if as_json else job_detail.as_text(page))


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="The reasons as one object.")
@target_options
@pass_target
def why(target: Target, job_id: str, as_json: bool) -> None:
    """Why a job is not running: what is in its way, in the order in which it must be cleared."""
    checked_id = check_id(job_id)
    found, now = target.operations(lambda operations: _explained(operations, checked_id))
    click.echo(json_text(found, indent=2) if as_json else _told(found, now))


async def _explained(operations: Operations, job_id: str) -> tuple[Why, datetime]:
    return await operations.jobs.why(job_id), await store_time(operations)


def _told(found: Why, now: datetime) -> str:
    lines = [f"{state(found.state)}  {found.job}"]
    for reason in found.reasons:
        ends = f" ({relative_time(reason.clears_at, now)})" if reason.clears_at is not None else ""
        lines.append(f"  {style('●', 'yellow')} {safe(reason.text)}{ends}")
        lines += [f"    {safe(reason.remedy)}"] if reason.remedy else []
    if found.fine:
        lines.append(f"  {style('✓', 'green')} {safe(found.fine[0].upper() + found.fine[1:])}.")
    if found.likely_start_at is not None:
        lines.append(f"  It likely starts {relative_time(found.likely_start_at, now)}.")
    return "\n".join(lines)


# --- move ----------------------------------------------------------------------------------------


@jobs.command()
@click.argument("job_ids", metavar="ID…", nargs=-1, required=True)
@click.option("--now", "at_once", is_flag=True, help="Due at once.")
@click.option(
    "--at", "run_at", type=parse_time, callback=checked("run_at"), metavar="INSTANT", help="Due then."
)
@click.option(
    "--delay", type=parse_duration, callback=checked("delay"), help="Due after this: 90, 15m, 1h30m."
)
@click.option("--priority", type=int, callback=checked("priority"), help="Larger first.")
@click.option("--queue", callback=checked("queue"), help="Where it shall wait.")
@target_options
@pass_target
def move(
    target: Target,
    job_ids: tuple[str, ...],
    at_once: bool,
    run_at: datetime | None,
    delay: float | None,
    priority: int | None,
    queue: str | None,
) -> None:
    """Change when queued jobs are due, how urgent they are, or where they wait."""
    said = {"--now": at_once or None, "--at": run_at, "--delay": delay}
    times = [flag for flag, value in said.items() if value is not None]
    if len(times) > 1:
        raise click.UsageError(f"{' and '.join(times)} were given: keep one.")
    if not times and priority is None and queue is None:
        raise click.UsageError("nothing to change was given: say when, how urgent, or where; see --help.")

    async def go(operations: Operations) -> int:
        due = run_at if delay is None else await store_time(operations) + timedelta(seconds=delay)
        ask = parse_request(UpdateJobRequest, now=at_once, run_at=due, priority=priority, queue=queue)
        now = await store_time(operations)

        def note(job: JobView) -> str:
            return f"due {relative_time(job.run_at, now)}, priority {job.priority}, queue {safe(job.queue)}"

        return await job_bulk.each(ids, lambda job_id: operations.jobs.move(job_id, ask), note)

    ids = job_bulk.checked_ids(job_ids)
    if target.operations(go):
        raise SystemExit(FAILED)
