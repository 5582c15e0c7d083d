"""Calendars at the desk: making one and changing one are two intents."""

from __future__ import annotations

import pytest

from rota import Rota
from rota.errors import AlreadyRegistered
from rota.operate import Desk
from rota.operate.asks import CalendarPut


async def test_a_calendar_that_is_there_is_not_made_anew_and_can_be_changed(desk: Desk, app: Rota) -> None:
    made = await desk.schedules.put_calendar("feasts", CalendarPut(dates=("2040-12-25",), new=True))
    again = CalendarPut(dates=("2041-01-01",), new=True)
    with pytest.raises(AlreadyRegistered, match="there is a calendar 'feasts' already: change that one"):
        await desk.schedules.put_calendar("feasts", again)
    assert (await desk.schedules.calendars()).items == [made]
    changed = await desk.schedules.put_calendar("feasts", CalendarPut(dates=("2041-01-01",)))
    assert (await desk.schedules.calendars()).items == [changed]
