"""``rota calendars``: named sets of dates on which schedules do not run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

import click
import msgspec

from ...core.plurals import plural
from ...errors import NotFound
from ...model import Page, Value
from ...operate import Operations
from ...operate.requests import MOST, PutCalendarRequest, SchedulesRequest
from ...operate.views import CalendarView, ScheduleView
from ...terminal.text import json_text, qualified_name, safe
from ..parts.confirm import confirm
from ..parts.files import read_text
from ..parts.lists import Columns, ListColumn, listing
from ..parts.options import json_option, yes_option
from ..parts.target import Target, pass_target, store_time, target_options

SHOWN = 20
WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class CalendarRow(Value, frozen=True, kw_only=True):
    """A calendar as printed: weekdays by name."""

    name: str
    dates: Sequence[str]
    weekend: Sequence[str]

    @property
    def days(self) -> list[date]:
        return sorted(date.fromisoformat(day) for day in self.dates)


def _calendar(view: CalendarView) -> CalendarRow:
    return CalendarRow(name=view.name, dates=view.dates, weekend=[WEEK[day] for day in view.weekend])


def _next(calendar: CalendarRow, now: datetime) -> str:
    return str(next((day for day in calendar.days if day >= now.date()), "–"))


def _weekend(calendar: CalendarRow) -> str:
    return ", ".join(calendar.weekend) or "none"


COLUMNS: Columns[CalendarRow] = (
    ListColumn("NAME", lambda calendar, now: safe(calendar.name)),
    ListColumn("DATES", lambda calendar, now: str(len(calendar.dates)), right=True),
    ListColumn("NEXT", _next),
    ListColumn("LAST", lambda calendar, now: str(max(calendar.days, default="–")), yields=2),
    ListColumn("WEEKEND", lambda calendar, now: _weekend(calendar), yields=1),
)


@click.group()
def calendars() -> None:
    """Manage dates on which schedules do not run."""


@listing(
    calendars,
    COLUMNS,
    empty="No calendars yet. Import the holidays of your country from an iCalendar file:\n"
    "  rota calendars import holidays.ics --name holidays\n"
    "Then use it: rota schedules update NAME --calendar holidays",
)
async def list_calendars(operations: Operations) -> Page[CalendarRow]:
    """List calendars, by name."""
    return Page([_calendar(view) for view in (await operations.schedules.calendars()).items])


async def _find(operations: Operations, name: str) -> CalendarRow | None:
    found = (view for view in (await operations.schedules.calendars()).items if view.name == name)
    return next(map(_calendar, found), None)


async def _get(operations: Operations, name: str) -> CalendarRow:
    if (calendar := await _find(operations, name)) is None:
        raise NotFound(f"there is no calendar named {name!r}")
    return calendar


@calendars.command()
@click.argument("name")
@click.option("--all", "everything", is_flag=True, help="Show all dates, including past ones.")
@json_option(what="the calendar and its schedules")
@target_options
@pass_target
def show(target: Target, name: str, everything: bool, as_json: bool) -> None:
    """Show the dates of one calendar, and the schedules that use it."""

    async def fetch(operations: Operations) -> tuple[CalendarRow, list[ScheduleView], date]:
        today = (await store_time(operations)).date()
        return await _get(operations, name), await _users(operations, name), today

    calendar, users, today = target.operations(fetch)
    if as_json:
        schedules = [{"tenant": s.tenant, "name": s.name} for s in users]
        click.echo(json_text({**msgspec.to_builtins(calendar), "schedules": schedules}, indent=2))
        return
    days = [day for day in calendar.days if everything or day >= today]
    shown = days if everything else days[:SHOWN]
    click.echo(f"{safe(calendar.name)}: {plural(len(calendar.dates), 'date')}, weekend {_weekend(calendar)}")
    for day in shown:
        click.echo(f"  {day}  {WEEK[day.weekday()]}")
    if len(days) > len(shown):
        click.echo(f"  … and {len(days) - len(shown)} more: --all")
    click.echo(f"Used by {_names(users) or 'no schedule'}")


@calendars.command("import")
@click.argument("file", metavar="FILE")
@click.option("--name", required=True, help="Name of the calendar; replaces an existing one.")
@json_option(what="the calendar")
@target_options
@pass_target
def import_(target: Target, file: str, name: str, as_json: bool) -> None:
    """Import the dates of every event in an iCalendar FILE (- for stdin)."""
    request = PutCalendarRequest(ics=read_text(file))

    async def act(operations: Operations) -> tuple[CalendarRow | None, CalendarRow]:
        before = await _find(operations, name)
        return before, _calendar(await operations.schedules.put_calendar(name, request))

    before, calendar = target.operations(act)
    if as_json:
        click.echo(json_text(calendar))
        return
    replaced = f", replacing {plural(len(before.dates), 'date')}" if before is not None else ""
    click.echo(f"{safe(calendar.name)}  imported: {plural(len(calendar.dates), 'date')}{replaced}")


@calendars.command()
@click.argument("name")
@yes_option
@target_options
@pass_target
def delete(target: Target, name: str, yes: bool) -> None:
    """Delete a calendar. Schedules that use it are disabled at their next fire time."""

    async def find_users(operations: Operations) -> list[ScheduleView]:
        await _get(operations, name)
        return await _users(operations, name)

    users = target.operations(find_users)
    effect = "No schedule uses it."
    if users:
        effect = f"Used by {_names(users)}: each will be disabled at its next fire time."
    confirm(effect, f"Delete calendar {safe(name)}?", yes=yes)
    target.operations(lambda operations: operations.schedules.delete_calendar(name))
    click.echo(f"{safe(name)}  deleted")


async def _users(operations: Operations, name: str) -> list[ScheduleView]:
    """The schedules that use the calendar."""
    found: list[ScheduleView] = []
    cursor: str | None = None
    while True:
        page = await operations.schedules.list(SchedulesRequest(limit=MOST, cursor=cursor))
        found += [schedule for schedule in page.items if schedule.calendar == name]
        cursor = page.next
        if cursor is None:
            return found


def _names(schedules: Sequence[ScheduleView]) -> str:
    names = [qualified_name(schedule.tenant, schedule.name) for schedule in schedules]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
