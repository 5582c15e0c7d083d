"""``rota calendars``: named sets of dates on which schedules do not run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import click

from ...errors import NotFound
from ...operate import Operations
from ...operate.requests import MOST, PutCalendarRequest, SchedulesRequest
from ...operate.views import CalendarView, ScheduleView
from ...terminal import table
from ...terminal.text import json_text, plural, safe
from ..parts.confirm import confirm
from ..parts.files import read_text
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.watch_option import watchable

SHOWN = 20
WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
COLUMNS = (
    table.Column("NAME"),
    table.Column("DATES", right=True),
    table.Column("NEXT"),
    table.Column("LAST", yields=2),
    table.Column("WEEKEND", yields=1),
)


@click.group()
def calendars() -> None:
    """Dates on which schedules do not run."""


@calendars.command("list")
@watchable
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": null}.')
@target_options
@pass_target
def list_(target: Target, as_json: bool) -> None:
    """All calendars, by name."""

    async def ask(operations: Operations) -> tuple[Sequence[CalendarView], date]:
        return (await operations.schedules.calendars()).items, (await store_time(operations)).date()

    found, today = target.operations(ask)
    if as_json:
        click.echo(json_text({"items": [_plain(calendar) for calendar in found], "next": None}))
    elif found:
        table.print_table(COLUMNS, [_row(calendar, today) for calendar in found])
    else:
        click.echo(
            "No calendars yet. Import the holidays of your country from an iCalendar file:\n"
            "  rota calendars import holidays.ics --name holidays\n"
            "and name it: rota schedules update NAME --calendar holidays"
        )


def _plain(calendar: CalendarView) -> dict[str, Any]:
    weekend = [WEEK[day] for day in calendar.weekend]
    return {"name": calendar.name, "dates": calendar.dates, "weekend": weekend}


def _row(calendar: CalendarView, today: date) -> tuple[str, ...]:
    days = _days(calendar)
    coming = next((day for day in days if day >= today), None)
    last = days[-1] if days else None
    return safe(calendar.name), str(len(days)), str(coming or "–"), str(last or "–"), _weekend(calendar)


def _days(calendar: CalendarView) -> list[date]:
    return sorted(date.fromisoformat(day) for day in calendar.dates)


def _weekend(calendar: CalendarView) -> str:
    return ", ".join(WEEK[day] for day in calendar.weekend) or "none"


async def _find(operations: Operations, name: str) -> CalendarView | None:
    return next((one for one in (await operations.schedules.calendars()).items if one.name == name), None)


async def _get(operations: Operations, name: str) -> CalendarView:
    if (calendar := await _find(operations, name)) is None:
        raise NotFound(f"there is no calendar named {name!r}")
    return calendar


@calendars.command()
@click.argument("name")
@click.option("--all", "everything", is_flag=True, help="Also dates that have passed, and all to come.")
@click.option("--json", "as_json", is_flag=True, help="The calendar and its schedules as one object.")
@target_options
@pass_target
def show(target: Target, name: str, everything: bool, as_json: bool) -> None:
    """The dates of one calendar, and the schedules that name it."""

    async def ask(operations: Operations) -> tuple[CalendarView, list[ScheduleView], date]:
        return (
            await _get(operations, name),
            await _users(operations, name),
            (await store_time(operations)).date(),
        )

    calendar, users, today = target.operations(ask)
    if as_json:
        told = {**_plain(calendar), "schedules": [{"tenant": s.tenant, "name": s.name} for s in users]}
        click.echo(json_text(told, indent=2))
        return
    days = [day for day in _days(calendar) if everything or day >= today]
    shown = days if everything else days[:SHOWN]
    click.echo(f"{safe(calendar.name)}: {plural(len(calendar.dates), 'date')}, weekend {_weekend(calendar)}")
    for day in shown:
        click.echo(f"  {day}  {WEEK[day.weekday()]}")
    if len(days) > len(shown):
        click.echo(f"  … and {len(days) - len(shown)} more: --all")
    click.echo(f"Used by {_names(users) or 'no schedule'}")


@calendars.command("import")
@click.argument("file", metavar="FILE")
@click.option("--name", required=True, help="How schedules name it; replaces one of that name.")
@click.option("--json", "as_json", is_flag=True, help="Print the calendar as one object.")
@target_options
@pass_target
def import_(target: Target, file: str, name: str, as_json: bool) -> None:
    """The dates of every event in an iCalendar FILE (- for stdin)."""
    text = read_text(file)

    ask = PutCalendarRequest(ics=text)

    async def go(operations: Operations) -> tuple[CalendarView | None, CalendarView]:
        return await _find(operations, name), await operations.schedules.put_calendar(name, ask)

    before, calendar = target.operations(go)
    if as_json:
        click.echo(json_text(_plain(calendar)))
        return
    instead = f", in place of {plural(len(before.dates), 'date')}" if before is not None else ""
    click.echo(f"{safe(calendar.name)}  imported: {plural(len(calendar.dates), 'date')}{instead}")


@calendars.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@target_options
@pass_target
def delete(target: Target, name: str, yes: bool) -> None:
    """Forget a calendar. A schedule that names it is disabled at its next fire."""

    async def look(operations: Operations) -> list[ScheduleView]:
        await _get(operations, name)
        return await _users(operations, name)

    users = target.operations(look)
    effect = (
        f"It is used by {_names(users)}: at its next fire each would be disabled."
        if users
        else "No schedule uses it."
    )
    confirm(effect, f"Delete calendar {safe(name)}?", yes=yes)
    target.operations(lambda operations: operations.schedules.delete_calendar(name))
    click.echo(f"{safe(name)}  deleted")


async def _users(operations: Operations, name: str) -> list[ScheduleView]:
    """The schedules that name the calendar."""
    found: list[ScheduleView] = []
    cursor: str | None = None
    while True:
        page = await operations.schedules.list(SchedulesRequest(limit=MOST, cursor=cursor))
        found += [schedule for schedule in page.items if schedule.calendar == name]
        cursor = page.next
        if cursor is None:
            return found


def _names(schedules: Sequence[ScheduleView]) -> str:
    names = [s.name if s.tenant == "default" else f"{s.tenant}/{s.name}" for s in schedules]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return safe(", ".join(names[:SHOWN])) + more
