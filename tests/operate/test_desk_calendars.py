"""Calendars at the desk: making one and changing one are two intents."""

from __future__ import annotations

import pytest

from rota import Rota
from rota.errors import AlreadyRegistered
from rota.operate import Operations
from rota.operate.requests import PutCalendarRequest


async def test_a_calendar_that_is_there_is_not_made_anew_and_can_be_changed(
    operations: Operations, app: Rota
) -> None:
    made = await operations.schedules.put_calendar(
        "feasts", PutCalendarRequest(dates=("2040-12-25",), new=True)
    )
    again = PutCalendarRequest(dates=("2041-01-01",), new=True)
    with pytest.raises(AlreadyRegistered, match="there is a calendar 'feasts' already: change that one"):
        await operations.schedules.put_calendar("feasts", again)
    assert (await operations.schedules.calendars()).items == [made]
    changed = await operations.schedules.put_calendar("feasts", PutCalendarRequest(dates=("2041-01-01",)))
    assert (await operations.schedules.calendars()).items == [changed]
