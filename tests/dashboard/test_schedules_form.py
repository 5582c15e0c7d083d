"""Creating and editing a schedule: summary of the rule, next runs, errors at their field."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browser_tools import Visitor
from scene import Visit
from timetable import make, names, stored

from admin.sites import Site

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
expect = sync_api.expect


def field_error(visitor: Visitor, label: str) -> Any:
    """The error at the field of this label."""
    field = visitor.page.locator(".field").filter(has=visitor.page.get_by_label(label, exact=True))
    return field.get_by_role("alert")


def fires(visitor: Visitor) -> Any:
    return visitor.page.get_by_role("table", name="Next runs").locator("tbody tr")


def submit(visitor: Visitor) -> None:
    button = visitor.page.locator(".savebar button[type=submit]")
    expect(button).to_be_enabled()
    button.click()


def test_schedule_is_created_with_a_preset_and_clicks(visit: Visit, site: Site) -> None:
    """Q10: the create form; S7: the cron builder."""
    visitor = visit("/schedules/new", role="operator")
    page = visitor.page
    page.get_by_label("Name").fill("hourly_mail")
    page.get_by_label("Task").fill("send_receipt")
    page.get_by_label("Payload").fill('{"order_id": 9123456789012345678}')
    page.get_by_role("button", name="Weekdays at 08:00").click()
    expect(page.get_by_label("Cron expression")).to_have_value("0 8 * * 1-5")
    page.get_by_role("button", name="Hour 8").click()
    page.get_by_role("button", name="Hour 14").click()
    page.get_by_role("button", name="Weekday 1-5").click()
    page.get_by_role("button", name="Weekday Fri").click()
    expect(page.get_by_role("button", name="Weekday Fri")).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_label("Cron expression")).to_have_value("0 8,14 * * 1-4")
    expect(page.locator(".rule-summary")).to_contain_text("Monday through Thursday")
    page.get_by_text("Skip this run.").click()
    submit(visitor)
    expect(page.get_by_role("heading", level=1)).to_have_text("hourly_mail")
    made = stored(site, "hourly_mail")
    assert (made.cron, made.overlap, made.source) == ("0 8,14 * * 1-4", "skip", "user")
    assert made.payload == {"order_id": 9_123_456_789_012_345_678}


def test_rule_is_summarised_while_typing(visit: Visit) -> None:
    """Q10: cron validation feedback."""
    visitor = visit("/schedules/new")
    page = visitor.page
    expect(fires(visitor)).to_have_count(10)
    page.get_by_label("Cron expression").fill("61 3 * * *")
    expect(field_error(visitor, "Cron expression")).to_contain_text("value 61 is out of range; use 0 to 59")
    expect(page.get_by_label("Cron expression")).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".savebar button[type=submit]")).to_be_disabled()
    page.get_by_label("Cron expression").fill("15 4 L * *")
    expect(page.locator(".rule-summary")).to_contain_text("At 04:15")
    expect(fires(visitor).first).to_contain_text("04:15 UTC")
    page.get_by_label("Time zone").fill("Europe/Nowhere")
    expect(field_error(visitor, "Time zone")).to_contain_text("there is no such time zone")
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    expect(fires(visitor).first).to_contain_text(re.compile(r"04:15.*19:15"))
    assert page.locator("#time-zones option[value='Europe/Stockholm']").count() == 1
    visitor.ignore_failed_requests()


def test_form_warns_of_clock_changes(visit: Visit) -> None:
    visitor = visit("/schedules/new")
    page = visitor.page
    page.get_by_label("Time zone").fill("Europe/Stockholm")
    page.get_by_label("Cron expression").fill("30 2 * * *")
    expect(page.locator(".note")).to_contain_text("02:30 does not exist, runs at 03:00")
    expect(page.locator(".note")).to_contain_text("02:30 happens twice: runs the first time")
    page.get_by_label("Cron expression").fill("30 12 * * *")
    expect(page.locator(".note")).to_have_count(0)
    page.get_by_label("Cron expression").fill("30 2 * * *")
    page.get_by_role("button", name="Use UTC instead").click()
    expect(page.get_by_label("Time zone")).to_have_value("UTC")
    expect(page.locator(".note")).to_have_count(0)


def test_intervals_and_single_times_are_valid_rules(visit: Visit, site: Site) -> None:
    visitor = visit("/schedules/new")
    page = visitor.page
    page.get_by_label("Name").fill("once")
    page.get_by_label("Task").fill("render_invoice")
    page.get_by_role("radio", name="Interval").check(force=True)
    page.get_by_label("Every", exact=True).fill("soon")
    expect(field_error(visitor, "Every")).to_contain_text("is not a duration")
    page.get_by_label("Every", exact=True).fill("1h30m")
    expect(page.locator(".rule-summary")).to_contain_text("Every 1 h 30 min")
    page.get_by_role("radio", name="Once", exact=True).check(force=True)
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    page.get_by_label("At (Tokyo time)").fill("2040-05-01T09:30:00")
    expect(page.locator(".rule-summary")).to_contain_text("Once, at 2040-05-01 09:30 Tokyo time")
    submit(visitor)
    expect(page.get_by_role("heading", level=1)).to_have_text("once")
    assert str(stored(site, "once").at) == "2040-05-01 00:30:00+00:00"
    visitor.ignore_failed_requests()


def test_payload_must_be_json_that_the_task_accepts(visit: Visit, site: Site) -> None:
    visitor = visit("/schedules/new")
    page = visitor.page
    page.get_by_label("Name").fill("wrong")
    page.get_by_label("Task").fill("send_receipt")
    for text, summary in (('{"order_id": ', "This is not valid JSON"), ("[1]", "A payload is a JSON object")):
        page.get_by_label("Payload").fill(text)
        expect(field_error(visitor, "Payload")).to_contain_text(summary)
        expect(page.locator(".savebar button[type=submit]")).to_be_disabled()
    page.get_by_label("Payload").fill('{"order_id": 1, "colour": "red"}')
    submit(visitor)
    expect(field_error(visitor, "Payload")).to_contain_text("unknown argument 'colour'")
    expect(page.get_by_label("Payload")).to_be_focused()
    assert "wrong" not in names(site)
    visitor.ignore_failed_requests()


def test_name_in_use_is_an_error_at_its_field(visit: Visit) -> None:
    visitor = visit("/schedules/new")
    visitor.page.get_by_label("Name").fill("nightly")
    visitor.page.get_by_label("Task").fill("anything")
    submit(visitor)
    expect(field_error(visitor, "Name")).to_contain_text("already has a schedule named 'nightly'")
    expect(visitor.page.get_by_label("Name")).to_be_focused()
    visitor.ignore_failed_requests()


def test_changes_are_listed_beside_save(visit: Visit, site: Site) -> None:
    """Q10: the edit form."""
    visitor = visit("/schedules/nightly/edit", role="operator")
    page = visitor.page
    bar = page.locator(".savebar")
    expect(bar).to_contain_text("No changes yet.")
    expect(bar.locator("button[type=submit]")).to_be_disabled()
    page.get_by_label("Cron expression").fill("30 4 * * *")
    page.get_by_label("Jitter").fill("2m")
    expect(bar.locator("li").filter(has_text="cron").locator("del")).to_have_text('"0 3 * * *"')
    expect(bar.locator("li").filter(has_text="cron").locator("ins")).to_have_text('"30 4 * * *"')
    expect(bar.locator("li")).to_have_count(2)
    submit(visitor)
    expect(page.locator(".page-header")).to_contain_text("At 04:30, every day")
    after = stored(site, "nightly")
    assert (after.cron, after.jitter, after.payload) == ("30 4 * * *", 120.0, {"order_id": 0})


def test_mask_never_overwrites_a_secret(visit: Visit, site: Site) -> None:
    make(site, "sync", task="render_invoice", payload={"password": "correct horse", "days": 3})
    visitor = visit("/schedules/sync/edit")
    page = visitor.page
    expect(page.get_by_label("Payload")).to_have_value(re.compile("•••"))
    page.get_by_label("Payload").fill('{"password": "•••", "days": 4}')
    expect(field_error(visitor, "Payload")).to_contain_text("Replace each ••• with the secret")
    expect(page.locator(".savebar button[type=submit]")).to_be_disabled()
    visitor.open("/schedules/sync/edit")
    page.get_by_label("Description").fill("kept apart")
    submit(visitor)
    expect(page.locator(".page-header")).to_contain_text("kept apart")
    assert stored(site, "sync").payload == {"password": "correct horse", "days": 3}


def test_policies_are_explained_and_other_fields_are_kept(visit: Visit, site: Site) -> None:
    visitor = visit("/schedules/nightly/edit")
    page = visitor.page
    page.get_by_text("Catch up with every missed run, oldest first.").click()
    page.get_by_label("At most").fill("5")
    page.get_by_label("None older than").fill("6h")
    page.get_by_text("Queue, attempts and calendar").click()
    page.get_by_label("Queue", exact=True).fill("bulk")
    page.get_by_label("Attempts").fill("7")
    submit(visitor)
    expect(
        page.get_by_text("Catch up with every missed run, oldest first. At most 5. None older than 6 h.")
    ).to_be_visible()
    after = stored(site, "nightly")
    assert (after.missed, after.missed_cap, after.missed_window) == ("all", 5, 21_600.0)
    assert (after.queue, after.max_attempts, after.cron) == ("bulk", 7, "0 3 * * *")


def test_end_is_set_and_removed(visit: Visit, site: Site) -> None:
    visitor = visit("/schedules/nightly/edit")
    page = visitor.page
    page.get_by_label("End (UTC time)").fill("2040-01-01T00:00")
    submit(visitor)
    expect(page.locator(".page-header")).to_contain_text("until 2040-01-01 00:00")
    visitor.go("/schedules/nightly/edit")
    page.get_by_label("End (UTC time)").fill("")
    expect(page.locator(".savebar del")).to_have_text('"2040-01-01T00:00:00.000Z"')
    submit(visitor)
    expect(page.get_by_role("heading", level=1)).to_have_text("nightly")
    expect(page.locator(".page-header")).not_to_contain_text("until")
    assert stored(site, "nightly").until is None


def test_schedule_is_created_with_the_keyboard_alone(visit: Visit, site: Site) -> None:
    visitor = visit("/schedules")
    page = visitor.page
    page.get_by_role("button", name="Create schedule").focus()
    page.keyboard.press("Enter")
    visitor.settled()
    page.get_by_label("Name").focus()
    page.keyboard.type("by_keys")
    page.get_by_label("Task").focus()
    page.keyboard.type("render_invoice")
    expect(page.locator(".savebar button[type=submit]")).to_be_enabled()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("by_keys")
    assert stored(site, "by_keys").cron == "0 3 * * *"
