"""Calendars: created, used and deleted."""

from __future__ import annotations

import pytest
from scene import Visit
from timetable import make, stored

from admin.sites import Site

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
expect = sync_api.expect

ICS = """BEGIN:VCALENDAR
BEGIN:VEVENT
DTSTART;VALUE=DATE:20401224
SUMMARY:Eve
END:VEVENT
END:VCALENDAR
"""


def test_calendar_is_created_from_dates_edited_and_deleted(visit: Visit, site: Site) -> None:
    visitor = visit("/calendars", role="operator")
    page = visitor.page
    expect(page.get_by_text("No calendars yet")).to_be_visible()
    page.get_by_role("button", name="Create calendar").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("holidays")
    dialog.get_by_role("textbox", name="Dates").fill("2040-12-25\n2040-12-26")
    dialog.get_by_label("Saturday").uncheck()
    dialog.get_by_role("button", name="Create calendar").click()
    line = page.get_by_role("table", name="Calendars").locator("tbody tr")
    expect(line).to_contain_text("2040-12-25")
    expect(line).to_contain_text("2 dates in total")
    page.get_by_role("button", name="Edit holidays").click()
    dialog.get_by_role("textbox", name="Dates").fill("2040-12-25, 25.12.2041")
    dialog.get_by_role("button", name="Save calendar").click()
    expect(dialog.get_by_role("alert")).to_contain_text("'25.12.2041' is not a date")
    dialog.get_by_role("textbox", name="Dates").fill("2040-12-25")
    dialog.get_by_role("button", name="Save calendar").click()
    expect(line).to_contain_text("1 date in total")
    page.get_by_role("button", name="Delete holidays").click()
    dialog.get_by_label("Type holidays to confirm").fill("holidays")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No calendars yet")).to_be_visible()
    assert site.do(site.rota.calendars.list) == []
    visitor.ignore_failed_requests()


def test_schedule_uses_a_calendar_from_a_pasted_file(visit: Visit, site: Site) -> None:
    make(site, "payday")
    visitor = visit("/calendars")
    page = visitor.page
    page.get_by_role("button", name="Create calendar").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("bank")
    dialog.get_by_role("radio", name="iCalendar text").check(force=True)
    dialog.get_by_label("Content of the .ics file").fill(ICS)
    dialog.get_by_role("button", name="Create calendar").click()
    expect(page.get_by_text("2040-12-24")).to_be_visible()
    visitor.go("/schedules/payday/edit")
    page.get_by_text("Queue, attempts and calendar").click()
    page.get_by_label("Calendar").select_option("bank")
    page.get_by_label("On these days").select_option("next_working_day")
    page.get_by_role("button", name="Save schedule").click()
    expect(page.get_by_text("run on the next working day")).to_be_visible()
    after = stored(site, "payday")
    assert (after.calendar, after.calendar_mode) == ("bank", "next_working_day")
    visitor.go("/calendars")
    expect(page.get_by_role("cell", name="1 schedule", exact=True)).to_be_visible()
