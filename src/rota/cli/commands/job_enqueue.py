"""``rota jobs enqueue``: every option is checked before anything is sent; an error names the option."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import click

from ...app import Rota
from ...core.jobs.options import CONFLICTS
from ...core.payload import codec as payloads
from ...core.plurals import plural
from ...errors import JobCancelled, JobFailed, NotFound, PayloadError
from ...model import LIVE, State
from ...operate import Operations
from ...operate.requests import EnqueueRequest, JobsRequest
from ...operate.views import EnqueuedView, JobView
from ...runtime.service import pause
from ...terminal.text import json_text, relative_time, safe, style
from ..parts.exit_codes import CommandFailed
from ..parts.job_options import PAYLOAD_HELP, checked, read_payload
from ..parts.options import given_options, json_option
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.time_parsing import parse_duration, parse_expiry, parse_time

FIRST_POLL_S, LAST_POLL_S = 0.05, 1.0


@click.command()
@click.argument("task")
@click.option("--payload", default="{}", callback=read_payload, help=PAYLOAD_HELP)
@click.option("--queue", callback=checked("queue"), help="Queue.  [default: the task's]")
@click.option("--priority", type=int, callback=checked("priority"),
              help="Priority, higher first.  [default: the task's]")  # fmt: skip
@click.option("--delay", type=parse_duration, callback=checked("delay"), metavar="DURATION",
              help="Due after this long: 90, 15m, 1h30m.")  # fmt: skip
@click.option("--run-at", type=parse_time, callback=checked("run_at"), metavar="TIME",
              help="Due at this time: 2030-01-31T08:00Z.")  # fmt: skip
@click.option("--key", callback=checked("key"), help="Idempotency key: at most one live job has it.")
@click.option("--key-for", callback=checked("key_for"), metavar="DURATION",
              help="Keep the key after a success: 1h, forever.")  # fmt: skip
@click.option("--key-per", callback=checked("key_per"), metavar="DURATION",
              help="One key per period, in UTC: 1h, 1d.")  # fmt: skip
@click.option("--on-conflict", type=click.Choice(CONFLICTS),
              help="What to do if a live job has the key.  [default: return]")  # fmt: skip
@click.option("--tenant", callback=checked("tenant"), help="Tenant.  [default: default]")
@click.option("--max-attempts", type=int, callback=checked("max_attempts"),
              help="Attempts, 1 to 100.  [default: the task's]")  # fmt: skip
@click.option("--timeout", type=parse_duration, callback=checked("timeout"), metavar="DURATION",
              help="Time limit per attempt.  [default: the task's]")  # fmt: skip
@click.option("--expires", type=parse_expiry, callback=checked("expires"), metavar="DURATION|TIME",
              help="Cancel the job if it has not begun this long after it is due, or by this time.  "
              "[default: the task's]")  # fmt: skip
@click.option("--keep", type=parse_duration, callback=checked("keep"), metavar="DURATION",
              help="Keep the job for this long once it has finished.  [default: the task's]")  # fmt: skip
@click.option("--concurrency-key", callback=checked("concurrency_key"), metavar="KEY",
              help="The limit key:KEY that it counts under.  [default: the task's]")  # fmt: skip
@click.option("--units", type=int, callback=checked("units"),
              help="Units it takes from each rate it is under.  [default: the task's, or 1]")  # fmt: skip
@click.option("--price", type=float, callback=checked("price"), metavar="CENTS",
              help="Cents reserved from the tenant's budget.  [default: the task's]")  # fmt: skip
@click.option("--tag", "tags", multiple=True, callback=checked("tags"), help="Tag (repeatable).")
@click.option("--auto-remove", is_flag=True, default=None, help="Delete the job when it succeeds.")
@click.option("--wait", is_flag=True, help="Wait until the job finishes and print its output.")
@click.option("--wait-timeout", type=parse_duration, default="60", show_default=True, metavar="DURATION",
              help="How long to --wait.")  # fmt: skip
@json_option(what="the job")
@target_options
@pass_target
def enqueue(
    target: Target,
    /,
    task: str,
    payload: Mapping[str, Any],
    wait: bool,
    wait_timeout: float,
    as_json: bool,
    **given: Any,
) -> None:
    """Enqueue a job of TASK and print its id; with --wait, its output.

    The task is given by name: its code need not be installed here.
    """
    options = given_options(given)
    if "delay" in options and "run_at" in options:
        raise click.UsageError("--delay and --run-at cannot be combined.")
    for option in ("on_conflict", "key_for", "key_per"):
        if option in options and "key" not in options:
            raise click.UsageError(f"--{option.replace('_', '-')} needs --key.")

    _check_payload(target.offline(), task, payload)

    async def act(operations: Operations) -> None:
        job: JobView = await _enqueue(operations, EnqueueRequest(task=task, payload=dict(payload), **options))
        if wait:
            job = await _wait(operations, job, wait_timeout)
            click.echo(json_text(job if as_json else job.output))
        else:
            click.echo(json_text(job) if as_json else job.id)

    target.operations(act)


def _check_payload(app: Rota, task: str, payload: Mapping[str, Any]) -> None:
    known = app.registry.get(task)
    limit = app.settings.max_payload_bytes
    try:
        if known is not None:
            known.signature.encode(payload, limit=limit)
        else:
            payloads.encode(payload, limit=limit, what="payload")
    except PayloadError as error:
        raise click.BadParameter(str(error), param_hint="'--payload'") from error


async def _enqueue(operations: Operations, request: EnqueueRequest) -> EnqueuedView:
    existing = await _existing(operations, request)
    job = await operations.jobs.enqueue(request)
    now = await store_time(operations)
    how = "already exists with this key" if job.id == existing else "enqueued"
    due = f", due {relative_time(job.run_at, now)}" if job.run_at > now else ""
    if job.warning is not None:
        click.echo(f"{style('!', 'yellow')} {safe(job.warning)}", err=True)
    click.echo(f"{safe(job.task)} {how} on queue {safe(job.queue)}{due}: {job.id}", err=True)
    return job


async def _existing(operations: Operations, request: EnqueueRequest) -> str | None:
    """The id of a live job that already has the key."""
    if request.key is None:
        return None
    live = JobsRequest(state=tuple(LIVE), key=request.key, tenant=request.tenant or "default", limit=1)
    return next((job.id for job in (await operations.jobs.list(live)).items), None)


async def _wait(operations: Operations, job: JobView, timeout: float) -> JobView:
    """The finished job; an error if it failed, was cancelled or is not finished in time."""
    stored, delay, never = job, FIRST_POLL_S, asyncio.Event()
    try:
        async with asyncio.timeout(timeout):
            while job.state in LIVE:
                await pause(delay, never)
                delay = min(delay * 2, LAST_POLL_S)
                job = await operations.jobs.show(job.id)
    except TimeoutError:
        raise CommandFailed(
            f"job {job.id} did not finish within {timeout:g} s; see rota jobs why {job.id}"
        ) from None
    except NotFound:
        if not stored.auto_remove:
            raise
        return stored  # it succeeded and was deleted
    return _succeeded(job)


def _succeeded(job: JobView) -> JobView:
    cause = job.error if isinstance(job.error, dict) else {}
    if job.state is State.CANCELLED:
        raise JobCancelled(f"job {job.id} ({job.task}) was cancelled: {cause.get('message')}")
    if job.state is State.FAILED:
        raise JobFailed(
            f"job {job.id} ({job.task}) failed after {plural(job.attempt, 'attempt')}: "
            f"{cause.get('type')}: {cause.get('message')}",
            cause,
        )
    return job
