"""The view of active pauses, and the switch for everything."""

from __future__ import annotations

import re

import pytest
from rows import cell, gates
from scene import Visit

from admin.sites import ADMIN, Site
from rota.model import Actor
from rota.operate.requests import GateRequest

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
expect = sync_api.expect

SWITCH = re.compile("^(Pause|Resume) (?!live updates)")


def pause(site: Site, scope: str, name: str | None = None, by: Actor = ADMIN, **more: object) -> None:
    ask = GateRequest(scope=scope, name=name, **more)  # type: ignore[arg-type]
    site.do(lambda: site.operations(by).gates.pause(ask))


def test_pauses_show_actor_reason_and_end(visit: Visit, site: Site) -> None:
    pause(site, "tenant", "globex", reason="the bill is open", for_s=1800)
    pause(site, "queue", "pdf")
    visitor = visit("/gates")
    expect(cell(visitor, "Tenant globex", "Reason")).to_have_text("the bill is open")
    expect(cell(visitor, "Tenant globex", "By")).to_have_text("tests")
    expect(cell(visitor, "Tenant globex", "Until")).to_contain_text(
        re.compile(r"in (29|30) min.*\d\d:\d\d:\d\d")
    )
    expect(cell(visitor, "Queue bulk", "Until")).to_have_text("resumed")
    expect(cell(visitor, "Queue pdf", "Reason")).to_have_text("no reason given")
    expect(cell(visitor, "Queue pdf", "Due jobs")).to_have_text("1")
    link = visitor.page.get_by_role("link", name="Queue pdf")
    expect(link).to_have_attribute("href", "/jobs?queue=pdf&state=queued")


def test_pause_is_resumed_and_a_new_one_appears_live(visit: Visit, site: Site) -> None:
    visitor = visit("/gates", role="operator")
    visitor.page.get_by_role("button", name="Resume bulk").click()
    expect(visitor.page.get_by_text("Nothing is paused")).to_be_visible()
    assert gates(site) == {}
    pause(site, "task", "send_receipt", reason="made elsewhere")
    expect(cell(visitor, "Task send_receipt", "Reason")).to_have_text("made elsewhere")


def test_everything_is_paused_only_after_typing_it(visit: Visit, site: Site) -> None:
    visitor = visit("/gates", role="operator")
    page = visitor.page
    page.get_by_role("button", name="Pause everything").click()
    dialog = page.get_by_role("dialog", name="Pause everything?")
    expect(dialog).to_contain_text("Affects 1 due job")
    expect(dialog).to_contain_text("Schedules keep creating jobs")
    sure = dialog.get_by_role("button", name="Pause", exact=True)
    expect(sure).to_be_disabled()
    dialog.get_by_label("Reason").fill("moving house")
    dialog.get_by_label(re.compile("^Type")).fill("pause everything")
    sure.click()
    expect(page.get_by_text("Everything is paused.").first).to_be_visible()
    assert gates(site)["all"].reason == "moving house"
    for path in ("/queues", "/tasks", "/workers", "/tenants"):
        visitor.go(path)
        expect(page.locator(".note")).to_contain_text("moving house")
    page.locator(".note").get_by_role("button", name="Resume everything").click()
    expect(page.locator(".note")).to_have_count(0)
    assert "all" not in gates(site)


def test_any_object_can_be_paused_by_name(visit: Visit, site: Site) -> None:
    visitor = visit("/gates")
    page = visitor.page
    for kind, name in (("task", "charge_card"), ("queue", "not-yet-there"), ("schedule", "nightly")):
        page.get_by_role("button", name="Pause…").click()
        page.get_by_role("dialog").get_by_label("Kind").select_option(kind)
        page.get_by_role("dialog").get_by_label("Name").fill(name)
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("dialog", name=f"Pause {kind} {name}?").get_by_role("button", name="Pause").click()
        expect(page.get_by_role("link", name=f"{kind.capitalize()} {name}")).to_be_visible()
    assert {"task:charge_card", "queue:not-yet-there", "schedule:default/nightly"} <= gates(site).keys()


def test_impossible_pause_shows_the_error(visit: Visit) -> None:
    visitor = visit("/gates")
    page = visitor.page
    page.get_by_role("button", name="Pause…").click()
    page.get_by_role("dialog").get_by_label("Kind").select_option("schedule")
    page.get_by_role("dialog").get_by_label("Name").fill("never-made")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("never-made")
    visitor.ignore_failed_requests()


def test_viewer_has_no_pause_button(visit: Visit) -> None:
    page = visit("/gates", role="viewer").page
    expect(page.get_by_role("link", name="Queue bulk")).to_be_visible()
    expect(page.get_by_role("button", name=SWITCH)).to_have_count(0)


def test_tenant_operator_resumes_own_pauses_only(visit: Visit, site: Site) -> None:
    """Of the pauses set for all tenants it sees those that hold its own jobs back, and resumes none."""
    pause(site, "tenant", "globex", by=Actor(name="ada", role="operator", tenant="globex"))
    pause(site, "queue", "mail", reason="not for tenants")
    page = visit("/gates", role="operator", tenant="globex").page
    expect(page.get_by_role("link", name="Queue mail")).to_be_visible()
    expect(page.get_by_text("not for tenants")).to_have_count(0)
    expect(page.get_by_role("link", name="Queue bulk")).to_have_count(0)
    expect(page.get_by_role("button", name="Resume mail")).to_have_count(0)
    expect(page.get_by_role("button", name="Pause everything")).to_have_count(0)
    page.get_by_role("button", name="Resume globex").click()
    expect(page.get_by_role("link", name="Tenant globex")).to_have_count(0)
    assert "tenant:globex" not in gates(site)


def test_tenant_operator_cannot_resume_a_pause_set_for_all(visit: Visit, site: Site) -> None:
    pause(site, "tenant", "globex")
    page = visit("/gates", role="operator", tenant="globex").page
    expect(page.get_by_role("link", name="Tenant globex")).to_be_visible()
    expect(page.get_by_role("button", name="Resume globex")).to_have_count(0)


def test_pause_and_resume_work_with_the_keyboard_alone(visit: Visit, site: Site) -> None:
    visitor = visit("/gates")
    page = visitor.page
    page.get_by_role("button", name="Pause…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.type("pdf")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("by keys")
    page.keyboard.press("Enter")
    expect(cell(visitor, "Queue pdf", "Reason")).to_have_text("by keys")
    page.get_by_role("button", name="Resume pdf").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Queue pdf")).to_have_count(0)
    assert "queue:pdf" not in gates(site)
