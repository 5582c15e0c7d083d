"""``rota schedules import crontab``: the lines of a crontab as schedules. A dry run unless told otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ..core.schedules.crontab import CrontabLine, from_crontab
from ..core.schedules.describe import summary
from ..errors import AlreadyRegistered
from ..model import Value
from ..operate import Operations
from ..operate.requests import CreateScheduleRequest
from . import table
from .enqueue import note_unknown
from .failures import FAILED
from .files import read_text
from .progress import progress
from .schedule_options import naming_flags, tenant_option
from .target import Target, pass_target, target_options
from .text import json_text, plural, safe

COLUMNS = (
    table.Column("LINE", right=True),
    table.Column("NAME"),
    table.Column("CRON", yields=2),
    table.Column("WHEN", yields=3),
    table.Column("COMMAND", yields=1),
)
LONGEST_NAME = 60
_END = re.compile(r"\s*(?:&&|\|\||[|;<>]|\d>).*", re.DOTALL)
_GO_THERE = re.compile(r"cd\s+\S+\s*(?:&&|;)\s*(?=\S)")
_SETTING = re.compile(r"[A-Za-z_]\w*=\S*\s+")


class Entry(Value, frozen=True, kw_only=True):
    """One line that can be imported."""

    line: int
    name: str
    cron: str
    timezone: str
    words: str
    command: str
    note: str | None = None


@click.group("import")
def import_() -> None:
    """Bring schedules from elsewhere."""


@import_.command("crontab")
@click.argument("file", metavar="FILE")
@click.option("--task", help='The task that runs them, with the payload {"command": "…"}.')
@click.option("--apply", is_flag=True, help="Create them. Without it: only tell which.")
@click.option("--system", is_flag=True, help="A user stands before each command, as in /etc/crontab.")
@click.option("--timezone", default="UTC", show_default=True, help="Of lines without a CRON_TZ above them.")
@click.option("--queue", help="Where their jobs wait.")
@tenant_option
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "unreadable": […]}.')
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
    """Schedules from a crontab FILE (- for stdin). A dry run unless --apply is given.

    Nothing of a command is run here: it becomes the payload of --task, which decides what to do with it.
    """
    if apply and task is None:
        raise click.UsageError('--apply needs --task: the task that is given each line as {"command": "…"}.')
    with naming_flags():
        lines = from_crontab(read_text(file), system, timezone)
    entries, unreadable = _entries(lines), [line for line in lines if line.error is not None]
    made: list[str] = []
    if apply and task is not None:
        asks = _asks(target, entries, tenant, {"task": task, "queue": queue})
        made = target.operations(lambda operations: _create(operations, entries, asks))
    if as_json:
        bad = [{"line": line.line, "cron": line.cron, "error": line.error} for line in unreadable]
        click.echo(json_text({"items": entries, "unreadable": bad, "applied": apply, "made": made}))
    else:
        _tell(entries, unreadable, made, apply)
    if unreadable or (apply and len(made) < len(entries)):
        raise SystemExit(FAILED)


def _entries(lines: Sequence[CrontabLine]) -> list[Entry]:
    taken: dict[str, int] = {}
    return [
        Entry(
            line=line.line,
            name=_free(name_of(line.command), taken),
            cron=line.cron,
            timezone=line.timezone,
            words=summary(line.rule),
            command=line.command,
            note=_note(line),
        )
        for line in lines
        if line.rule is not None
    ]


def name_of(command: str) -> str:
    """A name from what the command does: ``/usr/bin/backup.sh --full >log`` is ``backup-full``."""
    plain = _GO_THERE.sub("", command)
    while setting := _SETTING.match(plain):
        plain = plain[setting.end() :]
    said = [word.rpartition("/")[2] for word in _END.sub("", plain).split()]
    slugs = [re.sub(r"[^A-Za-z0-9_]+", "-", re.sub(r"\.\w{1,4}$", "", word)).strip("-") for word in said]
    return "-".join(filter(None, slugs))[:LONGEST_NAME].strip("-").lower() or "command"


def _free(name: str, taken: dict[str, int]) -> str:
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else _free(f"{name}-{taken[name]}", taken)


def _note(line: CrontabLine) -> str | None:
    if re.search(r"(?<!\\)%", line.command):
        return "cron makes line breaks of %; here it stays as it is: check the command"
    if line.user is not None and line.user != "root":
        return f"ran as {line.user}; here it runs as the worker does"
    return None


def _asks(
    target: Target, entries: Sequence[Entry], tenant: str, said: Mapping[str, Any]
) -> list[CreateScheduleRequest]:
    """What to make of each line, all of it checked before anything is sent."""
    app = target.offline()
    note_unknown(app, said["task"])
    rows = [
        {**said, "cron": e.cron, "timezone": e.timezone, "payload": {"command": e.command},
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
    operations: Operations, entries: Sequence[Entry], asks: Sequence[CreateScheduleRequest]
) -> list[str]:
    """The names that were made; one that is taken is told and left as it is."""
    made = []
    with progress("import", len(asks)) as tick:
        for entry, ask in zip(entries, asks, strict=True):
            try:
                await operations.schedules.create(ask)
                made.append(entry.name)
            except AlreadyRegistered as error:
                click.echo(f"rota: line {entry.line}: {safe(error)}", err=True)
            tick(1)
    return made


def _tell(
    entries: Sequence[Entry], unreadable: Sequence[CrontabLine], made: Sequence[str], applied: bool
) -> None:
    if entries:
        table.show(COLUMNS, [_row(entry) for entry in entries])
    for entry in entries:
        if entry.note:
            click.echo(f"! line {entry.line}: {safe(entry.note)}")
    for line in unreadable:
        click.echo(f"rota: {safe(line.error)}", err=True)
    click.echo(_closing(len(entries), len(unreadable), made, applied))


def _row(entry: Entry) -> tuple[str, ...]:
    return (str(entry.line), entry.name, safe(entry.cron), safe(entry.words), safe(entry.command))


def _closing(readable: int, unreadable: int, made: Sequence[str], applied: bool) -> str:
    rest = f" {plural(unreadable, 'line')} cannot be used: see above." if unreadable else ""
    if applied:
        return f"\n{plural(len(made), 'schedule')} created.{rest}"
    if not readable:
        return f"No line that can be imported.{rest}"
    return (
        f"\nDry run: {plural(readable, 'schedule')} would be created, nothing was.{rest}\n"
        "Times are in the zone shown: cron used the machine's own, which --timezone names.\n"
        "To create them: add --task NAME --apply"
    )
