"""Actions on calendars: the days on which schedules do not run. ``app.calendars`` stores them."""

from __future__ import annotations

from datetime import date

from ..core.schedules.calendars import Calendar
from ..errors import InvalidSchedule
from ..model import Page, PageRequest, ScheduleFilter
from ..runtime.heavy import off_the_loop
from .actions import ActionGroup, requires
from .requests import PutCalendarRequest
from .views import CalendarView


class CalendarActions(ActionGroup):
    """Actions on calendars, part of ``operations.schedules``."""

    @requires("read")
    async def calendars(self) -> Page[CalendarView]:
        """List the calendars: days on which schedules do not run. A tenant sees those it uses."""
        found = await self.services.calendars.list()
        if (own := self.operations.actor.tenant) is not None:
            used = await self._used_by(own)
            found = [calendar for calendar in found if calendar.name in used]
        return Page(items=await off_the_loop(lambda: [_view(one) for one in found]))

    async def _used_by(self, tenant: str) -> set[str]:
        store, used, cursor = await self.operations.store(), set[str](), None
        while True:
            page = await store.schedules(
                ScheduleFilter(tenant=tenant), PageRequest(limit=1000, cursor=cursor)
            )
            used |= {schedule.calendar for schedule in page.items if schedule.calendar is not None}
            if (cursor := page.next) is None:
                return used

    @requires("operate.shared")
    async def put_calendar(self, name: str, request: PutCalendarRequest) -> CalendarView:
        """Create or replace a calendar, from dates or from the content of an iCalendar file."""
        if (request.dates is None) == (request.ics is None):
            raise InvalidSchedule("give dates or ics: one of the two")
        async with self.operations.audited("calendar.put", f"calendar:{name}") as draft:
            if request.ics is not None:
                stored = await self.services.calendars.import_ics(name, request.ics, new=request.new)
            else:
                dates = await off_the_loop(lambda: [_date(text) for text in request.dates or ()])
                stored = await self.services.calendars.put(
                    name, dates, weekend=request.weekend, new=request.new
                )
            draft.after = {"dates": len(stored.dates)}
            return await off_the_loop(_view, stored)

    @requires("operate.shared")
    async def delete_calendar(self, name: str) -> None:
        """Delete a calendar. Schedules that use it are disabled at their next fire time."""
        async with self.operations.audited("calendar.delete", f"calendar:{name}"):
            await self.services.calendars.delete(name)


def _view(calendar: Calendar) -> CalendarView:
    return CalendarView(
        name=calendar.name,
        dates=tuple(sorted(one.isoformat() for one in calendar.dates)),
        weekend=tuple(sorted(calendar.weekend)),
    )


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidSchedule(f"{text!r} is not a date: write it as 2030-12-25") from None
