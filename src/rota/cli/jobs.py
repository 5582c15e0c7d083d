"""``rota jobs``: list, show, retry, cancel; ``enqueue`` has a module of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import click

from .. import operate
from ..app import Rota
from ..errors import IllegalMove, NotFound
from ..handle import plain
from ..model import Job, JobFilter, Page, PageAsk, State
from . import job_page, table
from .enqueue import enqueue
from .failures import FAILED
from .paging import say_more
from .target import Target, pass_target, target_options
from .text import json_text, safe, span, state, when

MOST = 1000
COLUMNS = (
    table.Column("ID"),
    table.Column("STATE"),
    table.Column("TASK", yields=5),
    table.Column("QUEUE", yields=2),
    table.Column("TRY", yields=3, right=True),
    table.Column("WHEN", yields=4),
    table.Column("NOTE", yields=1),
)


@click.group()
def jobs() -> None:
    """List, show, enqueue, retry and cancel jobs."""


jobs.add_command(enqueue)


# --- list ----------------------------------------------------------------------------------------


@jobs.command("list")
@click.option(
    "--state", "states", type=click.Choice([str(s) for s in State]), multiple=True, help="Only these."
)
@click.option("--task", help="Only this task.")
@click.option("--queue", help="Only this queue.")
@click.option("--tenant", help="Only this tenant.")
@click.option("--tag", help="Only jobs with this tag.")
@click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="At most so many.")
@click.option("--cursor", help="Go on where a page ended.")
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": cursor or null}.')
@target_options
@pass_target
@click.pass_context
def list_(
    ctx: click.Context,
    target: Target,
    states: tuple[str, ...],
    task: str | None,
    queue: str | None,
    tenant: str | None,
    tag: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """Jobs, newest first."""
    chosen = tuple(State(s) for s in states) or None
    where = JobFilter(states=chosen, task=task, queue=queue, tenant=tenant, tag=tag)

    async def ask(app: Rota) -> tuple[Page[Job], datetime]:
        store = await app.stores.get()
        return await operate.jobs(store, where, PageAsk(limit=limit, cursor=cursor)), app.clock.now()

    page, now = target.ask(ask)
    if as_json:
        click.echo(json_text({"items": [plain(job) for job in page.items], "next": page.next}))
    elif not page.items:
        click.echo(_nothing(where))
    else:
        table.show(COLUMNS, [_row(job, now) for job in page.items])
        say_more(ctx, target, page.next)


def _row(job: Job, now: datetime) -> tuple[str, ...]:
    tries = f"{job.attempt}/{job.max_attempts}"
    return (job.id, state(job.state), safe(job.task), safe(job.queue), tries, _time(job, now), _note(job))


def _time(job: Job, now: datetime) -> str:
    if job.is_final:
        return when(job.finished_at, now)
    if job.state is State.RUNNING:
        return f"for {span((now - (job.started_at or now)).total_seconds())}"
    return when(job.run_at, now) if job.run_at > now else f"due {when(job.run_at, now)}"


def _note(job: Job) -> str:
    told = plain(job)
    if job.state is State.RUNNING:
        return safe(job_page.progress(told["progress"]))
    return safe(job_page.headline(told["error"]))[:200] if job.state is not State.SUCCEEDED else ""


def _nothing(where: JobFilter) -> str:
    if where != JobFilter():
        return "No job matches. Without filters: rota jobs list"
    return (
        "No jobs yet. Enqueue one from your program with task.enqueue(…), or from here:\n"
        '  rota jobs enqueue TASK --payload \'{"name": "value"}\'\n'
        "Or watch some: rota demo"
    )


# --- show ----------------------------------------------------------------------------------------


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="The job with its attempts as one object.")
@target_options
@pass_target
def show(target: Target, job_id: str, as_json: bool) -> None:
    """Everything about one job."""
    operate.check_id(job_id)
    page = target.ask(lambda app: job_page.gather(app, job_id))
    click.echo(json_text(job_page.as_plain(page), indent=2) if as_json else job_page.as_text(page))


# --- retry and cancel ----------------------------------------------------------------------------

Act = Callable[[Rota, str], Awaitable[Job]]


@jobs.command()
@click.argument("job_ids", metavar="ID…", nargs=-1, required=True)
@target_options
@pass_target
def retry(target: Target, job_ids: tuple[str, ...]) -> None:
    """Run jobs that have ended once more."""
    _each(target, job_ids, lambda app, job_id: app.retry(job_id), lambda job: "due now")


@jobs.command()
@click.argument("job_ids", metavar="ID…", nargs=-1, required=True)
@click.option("--reason", default="cancelled by an operator", show_default=True, help="Kept with the job.")
@target_options
@pass_target
def cancel(target: Target, job_ids: tuple[str, ...], reason: str) -> None:
    """Cancel queued jobs; ask running ones to stop."""

    def note(job: Job) -> str:
        return "asked to stop" if job.state is State.RUNNING else ""

    _each(target, job_ids, lambda app, job_id: app.cancel(job_id, reason), note)


def _each(target: Target, job_ids: Sequence[str], act: Act, note: Callable[[Job], str]) -> None:
    """One line per job; exit code 1 if any could not be done. Nothing is sent if an id cannot be one."""
    checked = list(dict.fromkeys(operate.check_id(job_id) for job_id in job_ids))

    async def go(app: Rota) -> int:
        failed = 0
        for job_id in checked:
            try:
                job = await act(app, job_id)
                click.echo(f"{job.id}  {state(job.state)}  {note(job)}".rstrip())
            except (NotFound, IllegalMove) as error:
                failed += 1
                click.echo(f"rota: {safe(error)}", err=True)
        return failed

    if target.ask(go):
        raise SystemExit(FAILED)
