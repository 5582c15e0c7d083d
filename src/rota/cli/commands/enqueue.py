"""``rota jobs enqueue``: every flag is checked, and named if it is wrong, before anything is sent."""

from __future__ import annotations

import asyncio
import difflib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from ...app import Rota
from ...core.jobs.options import CONFLICTS, options
from ...core.payload import codec as payloads
from ...errors import JobCancelled, JobFailed, NotFound, OptionError, PayloadError
from ...model import LIVE, State
from ...operate import Operations
from ...operate.requests import EnqueueRequest, JobsRequest
from ...operate.views import JobView
from ...runtime.service import pause
from ...terminal.text import json_text, plural, relative_time, safe
from ..parts.exit_codes import CommandFailed
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.time_parsing import parse_duration, parse_time

SOONEST_LOOK_S, LATEST_LOOK_S = 0.05, 1.0


def read_payload(ctx: click.Context, param: click.Parameter, value: str) -> Mapping[str, Any]:
    """JSON text, ``@file`` or ``-`` becomes the job's arguments."""
    try:
        arguments = msgspec.json.decode(_text(value))
    except OSError as error:
        raise click.BadParameter(f"cannot read {value[1:]!r}: {error.strerror}", ctx, param) from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise click.BadParameter(f"this is not JSON: {error}", ctx, param) from error
    if not isinstance(arguments, dict):
        raise click.BadParameter('must be an object of arguments by name, as {"order_id": 42}', ctx, param)
    return arguments


def _text(value: str) -> str | bytes:
    if value == "-":
        return sys.stdin.buffer.read()
    return Path(value[1:]).read_bytes() if value.startswith("@") else value


def checked(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that holds the value to the rules for the job option of this name."""

    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        try:
            options({name: None if value == () else value})
        except OptionError as error:
            raise click.BadParameter(str(error), ctx, param) from error
        return value

    return check


@click.command()
@click.argument("task")
@click.option(
    "--payload", default="{}", callback=read_payload, help="Arguments as JSON, @FILE, or - for stdin."
)
@click.option("--queue", callback=checked("queue"), help="Where the job waits.")
@click.option("--priority", type=int, callback=checked("priority"), help="Larger first.")
@click.option(
    "--delay", type=parse_duration, callback=checked("delay"), help="Due after this: 90, 15m, 1h30m."
)
@click.option(
    "--run-at", type=parse_time, callback=checked("run_at"), help="Due at this instant: 2030-01-31T08:00Z."
)
@click.option("--key", callback=checked("key"), help="At most one live job has this key.")
@click.option(
    "--on-conflict", type=click.Choice(CONFLICTS), help="If a live job has the key.  [default: return]"
)
@click.option("--tenant", callback=checked("tenant"), help="Whose job it is.")
@click.option("--max-attempts", type=int, callback=checked("max_attempts"), help="1 to 100.")
@click.option("--timeout", type=parse_duration, callback=checked("timeout"), help="For each attempt.")
@click.option("--tag", "tags", multiple=True, callback=checked("tags"), help="Again for each tag.")
@click.option("--auto-remove", is_flag=True, default=None, help="Forget the job once it has succeeded.")
@click.option("--wait", is_flag=True, help="Wait for the job to end, and print its output.")
@click.option(
    "--wait-timeout", type=parse_duration, default="60", show_default=True, help="How long to --wait."
)
@click.option("--json", "as_json", is_flag=True, help="Print the job as one object.")
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
    """Store a job for TASK. Prints its id; with --wait, its output.

    The task is known by its name only: the code need not be here.
    """
    chosen = {name: value for name, value in given.items() if value not in (None, ())}
    if "delay" in chosen and "run_at" in chosen:
        raise click.UsageError("--delay and --run-at were both given: keep one.")
    if "on_conflict" in chosen and "key" not in chosen:
        raise click.UsageError("--on-conflict needs --key.")

    _check_payload(target.offline(), task, payload)

    async def go(operations: Operations) -> None:
        job = await _store(operations, EnqueueRequest(task=task, payload=dict(payload), **chosen))
        if wait:
            job = await _wait(operations, job, wait_timeout)
            click.echo(json_text(job if as_json else job.output))
        else:
            click.echo(json_text(job) if as_json else job.id)

    target.operations(go)


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
    note_unknown(app, task)


def note_unknown(app: Rota, task: str) -> None:
    """Say so if the app that was named does not have the task."""
    if app.registry.get(task) is None and app.registry.names:
        near = difflib.get_close_matches(task, app.registry.names, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        click.echo(f"note: the app has no task {safe(task)!r}; another worker must know it.{hint}", err=True)


async def _store(operations: Operations, ask: EnqueueRequest) -> JobView:
    holder = await _holder(operations, ask)
    job = await operations.jobs.enqueue(ask)
    now = await store_time(operations)
    how = "already there, with this key," if job.id == holder else "stored"
    due = f", due {relative_time(job.run_at, now)}" if job.run_at > now else ""
    click.echo(f"{safe(job.task)} {how} on queue {safe(job.queue)}{due}: {job.id}", err=True)
    return job


async def _holder(operations: Operations, ask: EnqueueRequest) -> str | None:
    """The live job that has the key already."""
    if ask.key is None:
        return None
    where = JobsRequest(state=tuple(LIVE), key=ask.key, tenant=ask.tenant or "default", limit=1)
    return next((job.id for job in (await operations.jobs.list(where)).items), None)


async def _wait(operations: Operations, job: JobView, timeout: float) -> JobView:
    """The job when it has ended; an error if it did not end well, or not in time."""
    stored, delay, never = job, SOONEST_LOOK_S, asyncio.Event()
    try:
        async with asyncio.timeout(timeout):
            while job.state in LIVE:
                await pause(delay, never)
                delay = min(delay * 2, LATEST_LOOK_S)
                job = await operations.jobs.show(job.id)
    except TimeoutError:
        raise CommandFailed(
            f"job {job.id} has not ended within {timeout:g} s: is a worker running? "
            f"See rota jobs why {job.id}"
        ) from None
    except NotFound:
        if not stored.auto_remove:
            raise
        return stored  # it has succeeded, and left nothing behind
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
