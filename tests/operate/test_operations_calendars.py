"""Actions on calendars: creating one and replacing one are different requests."""

from __future__ import annotations

import pytest

from rota import Rota
from rota.errors import AlreadyRegistered
from rota.operate import Operations
from rota.operate.requests import PutCalendarRequest


async def test_new_calendar_with_a_taken_name_is_rejected_and_put_replaces_it(
    operations: Operations, app: Rota
) -> None:
    created = await operations.schedules.put_calendar(
        "feasts", PutCalendarRequest(dates=("2040-12-25",), new=True)
    )
    again = PutCalendarRequest(dates=("2041-01-01",), new=True)
    with pytest.raises(AlreadyRegistered, match="there is a calendar 'feasts' already: change that one"):
        await operations.schedules.put_calendar("feasts", again)
    assert (await operations.schedules.calendars()).items == [created]
    changed = await operations.schedules.put_calendar("feasts", PutCalendarRequest(dates=("2041-01-01",)))
    assert (await operations.schedules.calendars()).items == [changed]
