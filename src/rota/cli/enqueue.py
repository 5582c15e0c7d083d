"""``rota jobs enqueue``: every flag is checked, and named if it is wrong, before anything is sent."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from ..app import Rota
from ..core import payload as payloads
from ..core.options import CONFLICTS, options
from ..errors import OptionError, PayloadError
from ..handle import JobHandle, plain
from .failures import Failure
from .target import Target, pass_target, target_options
from .text import json_text, safe, when

DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+(?:\.\d+)?)s)?")
SIZES = (86_400, 3_600, 60, 1)


def duration(value: str) -> float:
    text = value.strip().lower().replace(" ", "")
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    match = DURATION.fullmatch(text)
    if not text or match is None:
        raise click.BadParameter(f"{value!r} is not a duration: write seconds, or 90s, 15m, 1h30m, 2d")
    return sum(float(n) * size for n, size in zip(match.groups(), SIZES, strict=True) if n)


def instant(value: str) -> datetime:
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not an ISO instant: write 2030-01-31T08:00:00Z") from None
    if at.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no time zone: add Z or an offset such as +02:00")
    return at


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
@click.option("--delay", type=duration, callback=checked("delay"), help="Due after this: 90, 15m, 1h30m.")
@click.option(
    "--run-at", type=instant, callback=checked("run_at"), help="Due at this instant: 2030-01-31T08:00Z."
)
@click.option("--key", callback=checked("key"), help="At most one live job has this key.")
@click.option(
    "--on-conflict", type=click.Choice(CONFLICTS), help="If a live job has the key.  [default: return]"
)
@click.option("--tenant", callback=checked("tenant"), help="Whose job it is.")
@click.option("--max-attempts", type=int, callback=checked("max_attempts"), help="1 to 100.")
@click.option("--timeout", type=duration, callback=checked("timeout"), help="For each attempt.")
@click.option("--tag", "tags", multiple=True, callback=checked("tags"), help="Again for each tag.")
@click.option("--auto-remove", is_flag=True, default=None, help="Forget the job once it has succeeded.")
@click.option("--wait", is_flag=True, help="Wait for the job to end, and print its output.")
@click.option("--wait-timeout", type=duration, default="60", show_default=True, help="How long to --wait.")
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

    async def go(app: Rota) -> None:
        _check_payload(app, task, payload)
        job = await _store(app, task, payload, chosen)
        if wait:
            job = await _wait(job, wait_timeout)
            click.echo(json_text(plain(job) if as_json else job.output))
        else:
            click.echo(json_text(plain(job)) if as_json else job.id)

    target.ask(go)


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


async def _store(app: Rota, task: str, payload: Mapping[str, Any], chosen: Mapping[str, Any]) -> JobHandle:
    await app.stores.get()
    before = app.clock.now()
    job = await app.enqueue(task, payload, **chosen)
    now = app.clock.now()
    how = "already there, with this key," if job.created_at < before else "stored"
    due = f", due {when(job.run_at, now)}" if job.run_at > now else ""
    click.echo(f"{safe(job.task)} {how} on queue {safe(job.queue)}{due}: {job.id}", err=True)
    return job


async def _wait(job: JobHandle, timeout: float) -> JobHandle:
    try:
        output = await job.result(timeout)
    except TimeoutError as error:
        raise Failure(f"{error}: is a worker running? See rota jobs show {job.id}") from error
    if job.auto_remove:
        return msgspec.structs.replace(job, output_json=json_text(output))
    return await job.refresh()
