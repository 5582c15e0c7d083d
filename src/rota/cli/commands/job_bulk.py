"""``rota jobs retry``, ``cancel`` and ``delete``: by id, or by filter after a prompt that states the effect.

By filter, jobs are changed in steps of bounded size. Ctrl-C stops after the current step, so that the
reported count is exact, and running the command again continues.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

import click

from ...core.plurals import plural
from ...model import State
from ...operate import Operations, check_id
from ...operate.requests import BulkRequest, CancelRequest, JobSelector
from ...operate.views import BulkResult, JobView
from ...runtime.clock import monotonic
from ...runtime.service import pause
from ...terminal.text import json_text, state
from ..parts.confirm import confirm, confirm_delete
from ..parts.each import act_on_each
from ..parts.exit_codes import FAILED, exit_if_failed
from ..parts.job_columns import JOB_COLUMNS
from ..parts.job_filters import describe, filter_options, given_filters, selector_fields
from ..parts.lists import print_items
from ..parts.options import apply_options, json_option, yes_option
from ..parts.progress import progress as progress_bar
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, store_time, target_options

C = TypeVar("C", bound=Callable[..., Any])
Action = Literal["retry", "cancel", "delete"]

STEP = 500
# Which jobs an action may touch if no --state is given.
DEFAULT_STATE = {"retry": "finished", "cancel": "live", "delete": "idle"}
EFFECTS = {
    "retry": "will be queued to run now, with attempts reset.",
    "cancel": "will be cancelled; running ones are requested to stop.",
    "delete": "will be deleted, including history. This cannot be undone.",
}
DONE = {"retry": "queued", "cancel": "cancelled", "delete": "deleted"}
PERIODS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _rate(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """``50/s``, ``600/m``: jobs per second."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,9})(?:/([smh]))?", value.strip())
    if found is None or int(found[1]) == 0:
        raise click.BadParameter(f"{value!r} is not a rate; use 50/s, 600/m or 1000/h", ctx, param)
    return int(found[1]) / PERIODS[found[2] or "s"]


def bulk_options(command: C) -> C:
    """Give a command ids, filters, and the options of a bulk action."""
    return apply_options(command, (
        click.argument("job_ids", metavar="[ID…]", nargs=-1),
        filter_options,
        click.option("--dry-run", is_flag=True, help="Show the count and a sample; change nothing."),
        yes_option,
        click.option("--rate", callback=_rate, metavar="N/s", help="Limit the speed: 50/s, 600/m, 1000/h."),
        json_option(what="the result of a bulk action"),
    ))  # fmt: skip


@click.command()
@bulk_options
@target_options
@pass_target
def retry(target: Target, /, job_ids: tuple[str, ...], **given: Any) -> None:
    """Run finished jobs again, by id or by filter."""
    if not _by_ids(job_ids, given):
        return _many(target, "retry", given)

    async def act(operations: Operations) -> int:
        async def one(job_id: str) -> str:
            return job_line(await operations.jobs.retry(job_id), "due now")

        return await act_on_each(checked_ids(job_ids), one)

    exit_if_failed(target.operations(act))


@click.command()
@bulk_options
@click.option(
    "--reason", default="cancelled by an operator", show_default=True, help="Reason, stored with the job."
)
@target_options
@pass_target
def cancel(target: Target, /, job_ids: tuple[str, ...], reason: str, **given: Any) -> None:
    """Cancel queued jobs and request running ones to stop, by id or by filter."""
    if not _by_ids(job_ids, given):
        return _many(target, "cancel", given, reason)

    async def act(operations: Operations) -> int:
        request = parse_request(CancelRequest, reason=reason)

        async def one(job_id: str) -> str:
            job = await operations.jobs.cancel(job_id, request)
            return job_line(job, "requested to stop" if job.state is State.RUNNING else "")

        return await act_on_each(checked_ids(job_ids), one)

    exit_if_failed(target.operations(act))


@click.command()
@bulk_options
@target_options
@pass_target
def delete(target: Target, /, job_ids: tuple[str, ...], **given: Any) -> None:
    """Delete jobs that are not running, with their history, by id or by filter."""
    if not _by_ids(job_ids, given):
        return _many(target, "delete", given)
    ids = checked_ids(job_ids)
    confirm_delete(f"{plural(len(ids), 'job')} {EFFECTS['delete']}", len(ids), yes=given["yes"])

    async def act(operations: Operations) -> int:
        async def one(job_id: str) -> str:
            await operations.jobs.delete(job_id)
            return f"{job_id}  deleted"

        return await act_on_each(ids, one)

    exit_if_failed(target.operations(act))


def _by_ids(job_ids: Sequence[str], given: Mapping[str, Any]) -> bool:
    filters = given_filters(given)
    if job_ids and (filters or given["dry_run"] or given["rate"]):
        raise click.UsageError("ids and filters cannot be combined: pass one or the other.")
    if not job_ids and not filters:
        raise click.UsageError("no jobs selected: pass ids, or a filter such as --state failed --task NAME.")
    return bool(job_ids)


# --- by id ---------------------------------------------------------------------------------------


def checked_ids(job_ids: Sequence[str]) -> list[str]:
    """The ids without repeats; an invalid one is an error before anything is sent."""
    return list(dict.fromkeys(check_id(job_id) for job_id in job_ids))


def job_line(job: JobView, note: str) -> str:
    """The result of an action on one job."""
    return f"{job.id}  {state(job.state)}  {note}"


# --- by filter -----------------------------------------------------------------------------------


@dataclass
class BulkProgress:
    """How far a bulk action got."""

    done: int = 0
    refused: int = 0
    stopped: bool = False


def _many(target: Target, action: Action, given: Mapping[str, Any], reason: str | None = None) -> None:
    filters = given_filters(given)
    more: dict[str, Any] = {} if reason is None else {"reason": reason}

    async def preview(operations: Operations) -> tuple[BulkRequest, BulkResult, datetime]:
        now = await store_time(operations)
        # Jobs created while the prompt is open were not confirmed.
        selector = parse_request(JobSelector, **{"until": now, **await selector_fields(operations, filters)})
        request = BulkRequest(action=action, filter=selector, dry_run=True, limit=STEP, **more)
        return request, await operations.jobs.bulk(request), now

    request, found, now = target.operations(preview)
    selected = describe(filters, found.matched, found.exact, DEFAULT_STATE[action])
    effect = f"{selected} {EFFECTS[action]}"
    if given["dry_run"] or not found.matched:
        return _dry_run(found, effect, now, given["as_json"])
    if action == "delete":
        confirm_delete(effect, found.matched, yes=given["yes"])
    else:
        confirm(effect, "Continue?", yes=given["yes"])
    done = BulkProgress()
    try:
        target.operations(lambda operations: _apply(operations, request, found, given["rate"], done))
    except BaseException as error:  # also a second Ctrl-C
        _interrupted(done, found, action, given["as_json"], error)
        raise
    _report(done, found, action, given["as_json"])


def _dry_run(found: BulkResult, effect: str, now: datetime, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(found))
    elif not found.matched:
        click.echo("No job matches; nothing to do.")
    else:
        click.echo(f"{effect}\n")
        print_items(JOB_COLUMNS, found.sample, now)
        click.echo("\nDry run: nothing was changed. Remove --dry-run to apply.")


async def _apply(
    operations: Operations, dry: BulkRequest, found: BulkResult, rate: float | None, progress: BulkProgress
) -> None:
    """Step by step to the end, or until Ctrl-C."""
    cursor: str | None = None
    limit = STEP if rate is None else max(1, min(STEP, int(rate)))
    with _stopping() as stop, progress_bar(dry.action, found.matched if found.exact else None) as tick:
        while True:
            started = monotonic()
            step = await operations.jobs.bulk(
                BulkRequest(
                    action=dry.action, filter=dry.filter, reason=dry.reason, limit=limit, cursor=cursor
                )
            )
            progress.done, progress.refused = progress.done + step.done, progress.refused + step.refused
            tick(step.done + step.refused)
            if (cursor := step.next) is None:
                return
            due = 0.0 if rate is None else (step.done + step.refused) / rate - (monotonic() - started)
            if await pause(due, stop):
                progress.stopped = True
                return


@contextmanager
def _stopping() -> Iterator[asyncio.Event]:
    """The first Ctrl-C sets the event; the second one interrupts as usual."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def caught() -> None:
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    with suppress(NotImplementedError, ValueError, RuntimeError):  # some platforms have no signal handlers
        loop.add_signal_handler(signal.SIGINT, caught)
    try:
        yield stop
    finally:
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.remove_signal_handler(signal.SIGINT)


def _interrupted(
    done: BulkProgress, found: BulkResult, action: Action, as_json: bool, error: BaseException
) -> None:
    """How far the action came. A step whose answer was lost may have been done too."""
    done.stopped = True
    done.done += getattr(error, "done", 0)
    if as_json:
        _print_json(done, found, action)
    click.echo(
        f"rota: at least {done.done:,} of {_matched(found)} done; run the command again to continue", err=True
    )


def _print_json(done: BulkProgress, found: BulkResult, action: Action) -> None:
    matched = {"matched": found.matched, "exact": found.exact}
    click.echo(json_text({"action": action, **matched, **vars(done)}))


def _matched(found: BulkResult) -> str:
    return f"{found.matched:,}" if found.exact else f"{found.matched:,} or more"


def _report(done: BulkProgress, found: BulkResult, action: Action, as_json: bool) -> None:
    if as_json:
        _print_json(done, found, action)
    else:
        click.echo(f"{plural(done.done, 'job')} {DONE[action]}.")
    if done.refused:
        click.echo(
            f"rota: {plural(done.refused, 'job')} not changed: their state changed meanwhile, or a newer "
            "job has the idempotency key",
            err=True,
        )
    if done.stopped:
        click.echo(
            f"rota: stopped after {done.done:,} of {_matched(found)}; run the command again to continue",
            err=True,
        )
    if done.refused or done.stopped:
        raise SystemExit(FAILED)
