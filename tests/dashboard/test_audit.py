"""Audit: entries with their changes, filters, export."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from browser_tools import Visitor
from playwright.sync_api import Locator, expect
from scene import Visit

from admin.sites import Site
from rota.operate.requests import GateRequest


def pause(site: Site, queue: str, reason: str) -> None:
    ask = GateRequest(scope="queue", name=queue, reason=reason)
    site.do(lambda: site.operations().gates.pause(ask))


def table(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("table", name="Audit log")


def asked(visitor: Visitor) -> dict[str, list[str]]:
    return parse_qs(urlsplit(visitor.page.url).query)


def test_newest_entry_comes_first_with_its_changes(visit: Visit, site: Site) -> None:
    pause(site, "mail", "the provider is down")
    pause(site, "mail", "still down")
    visitor = visit("/audit")
    first = table(visitor).get_by_role("row").filter(has_text="queue.pause").first
    expect(first).to_contain_text("queue:mail")
    expect(first).to_contain_text("tests")
    expect(first.locator("del")).to_contain_text("the provider is down")
    expect(first.locator("ins").first).to_contain_text("still down")
    headers = table(visitor).get_by_role("columnheader").all_inner_texts()
    assert headers == ["Time", "Action", "By", "Result", "Change"]


def test_filters_are_in_the_url_and_reduce_the_list(visit: Visit, site: Site) -> None:
    pause(site, "mail", "down")
    visitor = visit("/audit?action=queue.")
    rows = table(visitor).locator("tbody tr")
    expect(rows).to_have_count(2)  # the shop pauses one queue itself
    visitor.page.get_by_label("Object").fill("queue:mail")
    visitor.page.get_by_label("Object").press("Enter")
    expect(rows).to_have_count(1)
    assert asked(visitor) == {"action": ["queue."], "object": ["queue:mail"]}
    visitor.page.get_by_label("Result").select_option("denied")
    expect(visitor.page.get_by_role("heading", name="No matching entries")).to_be_visible()
    visitor.page.get_by_role("link", name="Clear filters").click()
    expect(rows.nth(2)).to_be_visible()
    assert asked(visitor) == {}


def test_invalid_time_is_an_error_at_its_field(visit: Visit) -> None:
    visitor = visit("/audit?since=yesterdayish")
    expect(visitor.page.get_by_label("Since")).to_have_attribute("aria-invalid", "true")
    expect(visitor.page.get_by_role("alert")).to_contain_text("Use 24h")


def test_entry_opens_in_full_and_links_to_its_object(visit: Visit, site: Site) -> None:
    id = site.job("send_receipt", payload={"order_id": 5})
    visitor = visit("/audit?action=job.enqueue")
    visitor.page.get_by_role("button", name="job.enqueue").first.click()
    dialog = visitor.page.get_by_role("dialog")
    expect(dialog.get_by_role("table", name="Changes")).to_contain_text("send_receipt")
    dialog.get_by_role("link", name=f"job:{id}").click()
    visitor.page.wait_for_url(f"**/jobs/{id}")
    visitor.settled()


def test_action_of_another_program_appears_live(visit: Visit, site: Site) -> None:
    visitor = visit("/audit?action=queue.pause&object=queue:pdf")
    expect(visitor.page.get_by_role("heading", name="No matching entries")).to_be_visible()
    pause(site, "pdf", "out of paper")
    expect(table(visitor)).to_contain_text("out of paper", timeout=15_000)


def test_matching_entries_are_exported_as_json_lines(visit: Visit, site: Site, tmp_path: Path) -> None:
    for number in range(230):  # more than one page
        pause(site, "mail", f"reason {number}")
    visitor = visit("/audit?object=queue:mail")
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name="Export as JSON lines").click()
    download.value.save_as(tmp_path / "audit.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [line["message"] for line in lines] == [f"reason {number}" for number in reversed(range(230))]
    assert download.value.suggested_filename.endswith(".jsonl")


def test_more_entries_are_shown_on_request(visit: Visit, site: Site) -> None:
    for number in range(60):
        pause(site, "mail", f"reason {number}")
    visitor = visit("/audit?object=queue:mail")
    rows = table(visitor).locator("tbody tr")
    expect(rows).to_have_count(50)
    visitor.page.get_by_role("button", name="Show 50 more").click()
    expect(rows).to_have_count(60)
    expect(visitor.page.get_by_text("End of list")).to_be_visible()
