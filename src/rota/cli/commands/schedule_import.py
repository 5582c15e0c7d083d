"""``rota schedules import crontab``: the lines of a crontab as schedules. A dry run by default."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ...core.plurals import plural
from ...core.schedules.crontab import CrontabLine, from_crontab
from ...core.schedules.describe import summary
from ...errors import AlreadyRegistered
from ...model import Value
from ...operate import Operations
from ...operate.requests import CreateScheduleRequest
from ...terminal import table
from ...terminal.text import json_text, safe
from ..parts.exit_codes import FAILED
from ..parts.files import read_text
from ..parts.job_options import note_unknown_task
from ..parts.options import json_option
from ..parts.progress import progress
from ..parts.schedule_options import naming_flags, new_tenant_option
from ..parts.target import Target, pass_target, target_options

COLUMNS = (
    table.Column("LINE", right=True),
    table.Column("NAME"),
    table.Column("CRON", yields=2),
    table.Column("WHEN", yields=3),
    table.Column("COMMAND", yields=1),
)
LONGEST_NAME = 60
_SHELL_SYNTAX = re.compile(r"\s*(?:&&|\|\||[|;<>]|\d>).*", re.DOTALL)
_CHANGE_FOLDER = re.compile(r"cd\s+\S+\s*(?:&&|;)\s*(?=\S)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*\s+")


class CrontabEntry(Value, frozen=True, kw_only=True):
    """A line that can be imported."""

    line: int
    name: str
    cron: str
    timezone: str
    rule_summary: str
    command: str
    note: str | None = None


@click.group("import")
def import_() -> None:
    """Import schedules from other programs."""


@import_.command("crontab")
@click.argument("file", metavar="FILE")
@click.option("--task", help='Task to run for each line, with the payload {"command": "…"}.')
@click.option("--apply", is_flag=True, help="Create the schedules. Without it, only list them.")
@click.option("--system", is_flag=True, help="Lines have a user column, as in /etc/crontab.")
@click.option("--timezone", default="UTC", show_default=True, help="Time zone of lines without CRON_TZ.")
@click.option("--queue", help="Queue for their jobs.  [default: the task's]")
@new_tenant_option
@json_option("items", "unreadable", "applied", "made")
@target_options
@pass_target
def crontab(
    target: Target,
    file: str,
    task: str | None,
    apply: bool,
    system: bool,
    timezone: str,
    queue: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Import schedules from a crontab FILE (- for stdin). A dry run unless --apply is given.

    No command is run: each becomes the payload of a job of --task.
    """
    if apply and task is None:
        raise click.UsageError('--apply needs --task: the task that receives each line as {"command": "…"}.')
    with naming_flags():
        lines = from_crontab(read_text(file), system, timezone)
    entries, unreadable = _entries(lines), [line for line in lines if line.error is not None]
    created: list[str] = []
    if apply and task is not None:
        requests = _requests(target, entries, tenant, {"task": task, "queue": queue})
        created = target.operations(lambda operations: _create(operations, entries, requests))
    if as_json:
        bad = [{"line": line.line, "cron": line.cron, "error": line.error} for line in unreadable]
        click.echo(json_text({"items": entries, "unreadable": bad, "applied": apply, "made": created}))
    else:
        _echo(entries, unreadable, created, apply)
    if unreadable or (apply and len(created) < len(entries)):
        raise SystemExit(FAILED)


def _entries(lines: Sequence[CrontabLine]) -> list[CrontabEntry]:
    taken: dict[str, int] = {}
    return [
        CrontabEntry(
            line=line.line,
            name=_free(name_of(line.command), taken),
            cron=line.cron,
            timezone=line.timezone,
            rule_summary=summary(line.rule),
            command=line.command,
            note=_note(line),
        )
        for line in lines
        if line.rule is not None
    ]


def name_of(command: str) -> str:
    """A name for the command: ``/usr/bin/backup.sh --full >log`` is ``backup-full``."""
    plain = _CHANGE_FOLDER.sub("", command)
    while setting := _ASSIGNMENT.match(plain):
        plain = plain[setting.end() :]
    parts = [word.rpartition("/")[2] for word in _SHELL_SYNTAX.sub("", plain).split()]
    slugs = [re.sub(r"[^A-Za-z0-9_]+", "-", re.sub(r"\.\w{1,4}$", "", word)).strip("-") for word in parts]
    return "-".join(filter(None, slugs))[:LONGEST_NAME].strip("-").lower() or "command"


def _free(name: str, taken: dict[str, int]) -> str:
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else _free(f"{name}-{taken[name]}", taken)


def _note(line: CrontabLine) -> str | None:
    if re.search(r"(?<!\\)%", line.command):
        return "cron turns % into a line break; here it stays %: check the command"
    if line.user is not None and line.user != "root":
        return f"ran as {line.user}; here it runs as the worker's user"
    return None


def _requests(
    target: Target, entries: Sequence[CrontabEntry], tenant: str, given: Mapping[str, Any]
) -> list[CreateScheduleRequest]:
    """A request per line, all checked before anything is sent."""
    app = target.offline()
    note_unknown_task(app, given["task"])
    rows = [
        {**given, "cron": e.cron, "timezone": e.timezone, "payload": {"command": e.command},
         "description": f"crontab, line {e.line}"}
        for e in entries
    ]  # fmt: skip
    with naming_flags():
        for entry, row in zip(entries, rows, strict=True):
            app.schedules.build(entry.name, tenant, row)
    return [
        CreateScheduleRequest(name=entry.name, tenant=tenant, **row)
        for entry, row in zip(entries, rows, strict=True)
    ]


async def _create(
    operations: Operations, entries: Sequence[CrontabEntry], requests: Sequence[CreateScheduleRequest]
) -> list[str]:
    """The names of the schedules created; a name that exists is reported and left unchanged."""
    created = []
    with progress("import", len(requests)) as tick:
        for entry, request in zip(entries, requests, strict=True):
            try:
                await operations.schedules.create(request)
                created.append(entry.name)
            except AlreadyRegistered as error:
                click.echo(f"rota: line {entry.line}: {safe(error)}", err=True)
            tick(1)
    return created


def _echo(
    entries: Sequence[CrontabEntry], unreadable: Sequence[CrontabLine], created: Sequence[str], applied: bool
) -> None:
    if entries:
        table.print_table(COLUMNS, [_row(entry) for entry in entries])
    for entry in entries:
        if entry.note:
            click.echo(f"! line {entry.line}: {safe(entry.note)}")
    for line in unreadable:
        click.echo(f"rota: {safe(line.error)}", err=True)
    click.echo(_closing(len(entries), len(unreadable), created, applied))


def _row(entry: CrontabEntry) -> tuple[str, ...]:
    return (str(entry.line), entry.name, safe(entry.cron), safe(entry.rule_summary), safe(entry.command))


def _closing(readable: int, unreadable: int, created: Sequence[str], applied: bool) -> str:
    rest = f" {plural(unreadable, 'line')} not imported, see above." if unreadable else ""
    if applied:
        return f"\n{plural(len(created), 'schedule')} created.{rest}"
    if not readable:
        return f"No line can be imported.{rest}"
    return (
        f"\nDry run: {plural(readable, 'schedule')} would be created; nothing was changed.{rest}\n"
        "Times are in the zone shown. cron used the machine's own zone: set it with --timezone.\n"
        "Add --task NAME --apply to create them."
    )
