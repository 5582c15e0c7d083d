"""``rota jobs retry``, ``cancel`` and ``delete``: by ids, or all that match, after saying what will happen.

Many are done in steps that the desk bounds. Ctrl-C ends after the step that is under way, so what is
told to be done is done, and the same command goes on with the rest.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

import click

from ...errors import IllegalMove, NotFound, StoreUnavailable
from ...model import State
from ...operate import Operations, check_id
from ...operate.requests import BulkRequest, CancelRequest, JobSelector
from ...operate.views import BulkResult, JobView
from ...runtime.clock import monotonic
from ...runtime.service import pause
from ...terminal.text import json_text, plural, safe, state
from ..parts.confirm import confirm, confirm_loss
from ..parts.exit_codes import FAILED
from ..parts.job_detail import show_jobs
from ..parts.job_filters import describe, filter_options, given_filters, selector_fields
from ..parts.progress import progress
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, store_time, target_options

C = TypeVar("C", bound=Callable[..., Any])
Action = Literal["retry", "cancel", "delete"]

STEP = 500
# Which jobs an action may touch, if no state was said.
USUAL = {"retry": "ended", "cancel": "unfinished", "delete": "idle"}
EFFECTS = {
    "retry": "will go back to the queue, due now, with all attempts.",
    "cancel": "will be cancelled; what runs is asked to stop.",
    "delete": "will be deleted, history and all. This cannot be taken back.",
}
DONE = {"retry": "put back", "cancel": "cancelled", "delete": "deleted"}
PERIODS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _rate(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """``50/s``, ``600/m``: jobs per second."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,9})(?:/([smh]))?", value.strip())
    if found is None or int(found[1]) == 0:
        raise click.BadParameter(f"{value!r} is no rate: write 50/s, 600/m or 1000/h", ctx, param)
    return int(found[1]) / PERIODS[found[2] or "s"]


def bulk_options(command: C) -> C:
    """Give a command ids, filters, and how to go about many."""
    for option in reversed((
        click.argument("job_ids", metavar="[ID…]", nargs=-1),
        filter_options,
        click.option("--dry-run", is_flag=True, help="Only tell how many, and show a few."),
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--rate", callback=_rate, metavar="N/s", help="At most so many: 50/s, 600/m."),
        click.option("--json", "as_json", is_flag=True, help="What was done to many, as one object."),
    )):  # fmt: skip
        command = option(command)
    return command


@click.command()
@bulk_options
@target_options
@pass_target
def retry(target: Target, /, job_ids: tuple[str, ...], **given: Any) -> None:
    """Run jobs that have ended once more: by ids, or all that match."""
    if not _by_ids(job_ids, given):
        return _many(target, "retry", given)

    async def go(operations: Operations) -> int:
        return await each(checked_ids(job_ids), operations.jobs.retry, lambda job: "due now")

    _end(target.operations(go))


@click.command()
@bulk_options
@click.option("--reason", default="cancelled by an operator", show_default=True, help="Kept with the job.")
@target_options
@pass_target
def cancel(target: Target, /, job_ids: tuple[str, ...], reason: str, **given: Any) -> None:
    """Cancel queued jobs, ask running ones to stop: by ids, or all that match."""
    if not _by_ids(job_ids, given):
        return _many(target, "cancel", given, reason)

    def note(job: JobView) -> str:
        return "asked to stop" if job.state is State.RUNNING else ""

    async def go(operations: Operations) -> int:
        ask = parse_request(CancelRequest, reason=reason)
        return await each(checked_ids(job_ids), lambda job_id: operations.jobs.cancel(job_id, ask), note)

    _end(target.operations(go))


@click.command()
@bulk_options
@target_options
@pass_target
def delete(target: Target, /, job_ids: tuple[str, ...], **given: Any) -> None:
    """Delete jobs that do not run, with their history: by ids, or all that match."""
    if not _by_ids(job_ids, given):
        return _many(target, "delete", given)
    ids = checked_ids(job_ids)
    confirm_loss(f"{plural(len(ids), 'job')} {EFFECTS['delete']}", len(ids), yes=given["yes"])

    async def go(operations: Operations) -> int:
        return await each(ids, operations.jobs.delete, lambda job: "")

    _end(target.operations(go))


def _by_ids(job_ids: Sequence[str], given: Mapping[str, Any]) -> bool:
    said = given_filters(given)
    if job_ids and (said or given["dry_run"] or given["rate"]):
        raise click.UsageError(
            "ids and filters were both given: name the jobs, or say which match; keep one."
        )
    if not job_ids and not said:
        raise click.UsageError("which jobs? Give their ids, or a filter such as --state failed --task NAME.")
    return bool(job_ids)


def _end(failed: int) -> None:
    if failed:
        raise SystemExit(FAILED)


# --- by ids --------------------------------------------------------------------------------------


def checked_ids(job_ids: Sequence[str]) -> list[str]:
    """Nothing is sent if an id cannot be one."""
    return list(dict.fromkeys(check_id(job_id) for job_id in job_ids))


async def each(
    ids: Sequence[str],
    act: Callable[[str], Awaitable[JobView | None]],
    note: Callable[[JobView], str],
) -> int:
    """One line per job; how many could not be done."""
    failed = 0
    for job_id in ids:
        try:
            job = await act(job_id)
            how = "deleted" if job is None else f"{state(job.state)}  {note(job)}"
            click.echo(f"{job_id}  {how}".rstrip())
        except (NotFound, IllegalMove) as error:
            failed += 1
            click.echo(f"rota: {safe(error)}", err=True)
    return failed


# --- all that match ------------------------------------------------------------------------------


@dataclass
class BulkProgress:
    """How far it came."""

    done: int = 0
    refused: int = 0
    stopped: bool = False


def _many(target: Target, action: Action, given: Mapping[str, Any], reason: str | None = None) -> None:
    said = given_filters(given)
    more: dict[str, Any] = {} if reason is None else {"reason": reason}

    async def look(operations: Operations) -> tuple[BulkRequest, BulkResult, datetime]:
        now = await store_time(operations)
        # Jobs that come while the question is on the screen are not what was agreed to.
        match = parse_request(JobSelector, **{"until": now, **await selector_fields(operations, said)})
        ask = BulkRequest(action=action, filter=match, dry_run=True, limit=STEP, **more)
        return ask, await operations.jobs.bulk(ask), now

    ask, found, now = target.operations(look)
    effect = f"{describe(said, found.matched, found.exact, USUAL[action])} {EFFECTS[action]}"
    if given["dry_run"] or not found.matched:
        return _told_only(found, effect, now, given["as_json"])
    if action == "delete":
        confirm_loss(effect, found.matched, yes=given["yes"])
    else:
        confirm(effect, "Go on?", yes=given["yes"])
    tally = BulkProgress()
    try:
        target.operations(lambda operations: _work(operations, ask, found, given["rate"], tally))
    except StoreUnavailable:
        click.echo(f"rota: {tally.done:,} were done before it went away; the same command goes on", err=True)
        raise
    _report(tally, found, action, given["as_json"])


def _told_only(found: BulkResult, effect: str, now: datetime, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(found))
    elif not found.matched:
        click.echo("No job matches: nothing to do.")
    else:
        click.echo(f"{effect}\n")
        show_jobs(found.sample, now)
        click.echo("\nDry run: nothing was done. To do it, leave --dry-run out.")


async def _work(
    operations: Operations, dry: BulkRequest, found: BulkResult, rate: float | None, tally: BulkProgress
) -> None:
    """Step by step to the end, or until asked to stop."""
    cursor: str | None = None
    limit = STEP if rate is None else max(1, min(STEP, int(rate)))
    with _stopping() as stop, progress(dry.action, found.matched) as tick:
        while True:
            began = monotonic()
            step = await operations.jobs.bulk(
                BulkRequest(
                    action=dry.action, filter=dry.filter, reason=dry.reason, limit=limit, cursor=cursor
                )
            )
            tally.done, tally.refused = tally.done + step.done, tally.refused + step.refused
            tick(step.done + step.refused)
            if (cursor := step.next) is None:
                return
            due = 0.0 if rate is None else (step.done + step.refused) / rate - (monotonic() - began)
            if await pause(due, stop):
                tally.stopped = True
                return


@contextmanager
def _stopping() -> Iterator[asyncio.Event]:
    """The first Ctrl-C sets the event; the second is the usual one."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def caught() -> None:
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    with suppress(NotImplementedError, ValueError, RuntimeError):  # not everywhere are there signals
        loop.add_signal_handler(signal.SIGINT, caught)
    try:
        yield stop
    finally:
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.remove_signal_handler(signal.SIGINT)


def _report(tally: BulkProgress, found: BulkResult, action: Action, as_json: bool) -> None:
    if as_json:
        told = {"matched": found.matched, "exact": found.exact}
        click.echo(json_text({"action": action, **told, **vars(tally)}))
    else:
        click.echo(f"{plural(tally.done, 'job')} {DONE[action]}.")
    if tally.refused:
        click.echo(
            f"rota: {plural(tally.refused, 'job')} could not be touched: changed meanwhile, or a newer job "
            "has the key",
            err=True,
        )
    if tally.stopped:
        of = f"{found.matched:,}" if found.exact else f"{found.matched:,} or more"
        click.echo(
            f"rota: stopped: {tally.done:,} of {of} are done; the same command goes on with the rest",
            err=True,
        )
    if tally.refused or tally.stopped:
        raise SystemExit(FAILED)
