"""One job: what it tells, and everything that can be done with it."""

from __future__ import annotations

from typing import Any

import pytest
from browsing import Visitor
from scene import BIG, Visit

from rota.operate.asks import JobsAsk

expect = pytest.importorskip("playwright.sync_api").expect


def found(visitor: Visitor, **ask: Any) -> str:
    """The id of the newest job that matches."""
    page = visitor.site.do(lambda: visitor.site.desk().jobs.list(JobsAsk(**ask)))
    return page.items[0].id


def opened(visit: Visit, **ask: Any) -> Visitor:
    visitor = visit()
    visitor.open(f"/jobs/{found(visitor, **ask)}")
    return visitor


def test_a_failed_job_shows_its_attempt_with_the_traceback(visit: Visit) -> None:
    page = opened(visit, task="charge_card").page
    expect(page.get_by_role("heading", level=1)).to_have_text("charge_card")
    expect(page.locator("details.attempt")).to_have_count(1)
    expect(page.get_by_label("Traceback")).to_contain_text('raise KeyError("vat_rate")')


def test_log_lines_stand_with_their_attempt(visit: Visit) -> None:
    page = opened(visit, task="poll_feed").page
    expect(page.get_by_role("table", name="1 log line")).to_contain_text("asked the partner")


def test_big_numbers_stay_exact_and_only_web_links_can_be_followed(visit: Visit) -> None:
    page = opened(visit, task="send_receipt", tenant="acme").page
    output = page.get_by_role("group", name="Output")
    expect(output).to_contain_text(str(BIG))
    link = output.get_by_role("link")
    expect(link).to_have_attribute("href", "https://example.com/receipts/1")
    expect(link).to_have_attribute("rel", "noopener noreferrer")


def test_stored_markup_is_shown_as_it_is(visit: Visit) -> None:
    page = opened(visit, tenant="globex").page
    expect(page.get_by_role("group", name="Payload")).to_contain_text("<b>bold</b>")
    assert page.locator("main b", has_text="bold").filter(has_not_text="<b>").count() == 0


def test_a_job_says_why_it_does_not_run_and_helps(visit: Visit) -> None:
    visitor = opened(visit, tenant="globex")
    why = visitor.page.get_by_role("region", name="Why is it not running?")
    expect(why).to_contain_text("due later")
    why.get_by_role("button", name="Make due now").click()
    expect(why).not_to_contain_text("due later")
    expect(why).to_contain_text("No worker is alive")


def test_a_failed_job_is_retried(visit: Visit) -> None:
    visitor = opened(visit, task="charge_card")
    visitor.page.get_by_role("button", name="Retry", exact=True).click()
    expect(visitor.page.locator(".lede")).to_contain_text("queued")
    expect(visitor.page.get_by_role("region", name="History")).to_contain_text("job.retry")


def test_a_job_is_retried_with_an_edited_payload(visit: Visit) -> None:
    visitor = opened(visit, task="charge_card")
    page, old = visitor.page, visitor.page.url.rsplit("/", 1)[1]
    page.get_by_role("button", name="Retry with edits").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Payload").fill('{"order_id": 4711}')
    dialog.get_by_role("button", name="Enqueue job").click()
    expect(page.get_by_role("group", name="Payload")).to_contain_text("4711")
    expect(page.get_by_role("link", name=old)).to_be_visible()  # its parent
    page.get_by_role("link", name=old).click()
    expect(
        page.get_by_role("region", name="Children").get_by_role("link", name="charge_card")
    ).to_be_visible()


def test_a_queued_job_is_moved_in_rank_and_queue(visit: Visit) -> None:
    visitor = opened(visit, task="render_invoice")
    page = visitor.page
    page.get_by_role("button", name="Move").click()
    dialog = page.get_by_role("dialog", name="Move this job")
    dialog.get_by_label("Priority").fill("7")
    dialog.get_by_label("Queue").fill("urgent")
    dialog.get_by_role("button", name="Move").click()
    facts = page.get_by_role("region", name="Facts")
    expect(facts.get_by_role("link", name="urgent")).to_be_visible()
    job = visitor.site.do(lambda: visitor.site.desk().jobs.show(page.url.rsplit("/", 1)[1]))
    assert (job.priority, job.queue) == (7, "urgent")


def test_a_job_due_later_is_run_now(visit: Visit) -> None:
    visitor = opened(visit, tenant="globex")
    visitor.page.get_by_role("button", name="Run now").click()
    expect(visitor.page.get_by_role("button", name="Run now")).to_have_count(0)


def test_a_job_is_cancelled_with_a_reason(visit: Visit) -> None:
    visitor = opened(visit, task="render_invoice")
    page = visitor.page
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog", name="Cancel this job?")
    dialog.get_by_label("Reason").fill("not wanted any more")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator(".lede")).to_contain_text("cancelled")
    expect(page.get_by_role("region", name="History")).to_contain_text("not wanted any more")


def test_a_job_is_deleted_and_one_is_back_among_the_jobs(visit: Visit) -> None:
    visitor = opened(visit, task="render_invoice")
    page = visitor.page
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete this job?").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(page.get_by_role("link", name="render_invoice")).to_have_count(0)


def test_a_job_can_be_copied_as_a_command_a_request_and_a_program(visit: Visit) -> None:
    visitor = opened(visit, tenant="globex")
    visitor.page.get_by_role("button", name="Copy as").click()
    dialog = visitor.page.get_by_role("dialog", name="Copy as")
    for part in ("rota jobs enqueue send_receipt", "Authorization: Bearer", "await app.enqueue", str(BIG)):
        expect(dialog).to_contain_text(part)


def test_a_job_that_is_not_there_is_told(visit: Visit) -> None:
    visitor = visit("/jobs/0195d4e2-6b1c-7d40-9a1e-52c07f9f0b3e")
    expect(visitor.page.get_by_role("alert")).to_contain_text("there is no job")
    visitor.forgive_refusals()


def test_what_happens_to_a_job_elsewhere_is_seen_here(visit: Visit) -> None:
    visitor = opened(visit, task="render_invoice")
    id = found(visitor, task="render_invoice")
    visitor.site.do(lambda: visitor.site.rota.cancel(id, "from elsewhere"))
    expect(visitor.page.locator(".lede")).to_contain_text("cancelled")
