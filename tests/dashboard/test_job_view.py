"""One job: its content and its actions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_tools import Visitor
from scene import BIG, Visit

from admin.sites import Site
from cli.command import started
from rota import Backoff, Context
from rota.model import ClaimRequest
from rota.operate.requests import JobsRequest
from rota.store.calls import claim
from rota.testing import drain
from rota.worker.maintenance import rescue

expect = pytest.importorskip("playwright.sync_api").expect


def found(visitor: Visitor, **ask: Any) -> str:
    """The id of the newest job that matches."""
    page = visitor.site.do(lambda: visitor.site.operations().jobs.list(JobsRequest(**ask)))
    return page.items[0].id


def opened(visit: Visit, **ask: Any) -> Visitor:
    visitor = visit()
    visitor.open(f"/jobs/{found(visitor, **ask)}")
    return visitor


def test_failed_job_shows_its_attempt_with_the_traceback(visit: Visit) -> None:
    page = opened(visit, task="charge_card").page
    expect(page.get_by_role("heading", level=1)).to_have_text("charge_card")
    expect(page.locator("details.attempt")).to_have_count(1)
    expect(page.get_by_label("Traceback")).to_contain_text('raise KeyError("vat_rate")')


# --- attempts side by side -----------------------------------------------------------------------

AT_ONCE = Backoff(base=0, factor=1, cap=0, jitter=0)


def tried(site: Site, *errors: Exception) -> None:
    """A job that fails once with each of these, for good with the last."""
    left = list(errors)

    async def stumble(ctx: Context) -> None:
        ctx.log(f"{len(left)} to go")
        raise left.pop(0)

    site.rota.task(name="stumble", max_attempts=len(errors), backoff=AT_ONCE)(stumble)

    async def act() -> None:
        await site.rota.enqueue("stumble", {})
        await drain(site.rota)

    site.do(act)


def test_two_attempts_are_compared_side_by_side(visit: Visit, site: Site) -> None:
    tried(site, TimeoutError("no answer"), TimeoutError("no answer"))
    page = opened(visit, task="stumble").page
    left = page.get_by_role("region", name="Attempt 1, left")
    right = page.get_by_role("region", name="Attempt 2, right")
    for side, line in ((left, "2 to go"), (right, "1 to go")):
        expect(side.get_by_label("Traceback")).to_contain_text("TimeoutError: no answer")
        expect(side.get_by_role("table", name="1 log line")).to_contain_text(line)
    one, other = left.bounding_box(), right.bounding_box()
    assert one is not None and other is not None
    assert one["y"] == other["y"] and one["x"] + one["width"] <= other["x"]
    expect(
        page.get_by_text("Attempt 2 compared with attempt 1: the same error, the same worker.")
    ).to_be_visible()
    expect(page.get_by_role("combobox")).to_have_count(0)  # there is nothing to choose


def test_any_two_attempts_can_be_compared(visit: Visit, site: Site) -> None:
    tried(site, TimeoutError("no answer"), KeyError("vat_rate"), KeyError("city"))
    page = opened(visit, task="stumble").page
    expect(page.get_by_text("the same type of error, a different message")).to_be_visible()
    choice = page.get_by_label("Attempt on the left")
    choice.focus()
    choice.press("ArrowDown")
    left = page.get_by_role("region", name="Attempt 1, left")
    expect(left.get_by_label("Traceback")).to_contain_text("TimeoutError: no answer")
    expect(page.get_by_text("Attempt 3 compared with attempt 1: a different error")).to_be_visible()
    expect(choice).to_be_focused()
    page.get_by_label("Attempt on the right").select_option("Attempt 2, KeyError")
    expect(page.get_by_role("region", name="Attempt 2, right")).to_contain_text("vat_rate")


def test_attempts_are_stacked_on_a_narrow_screen(visit: Visit, site: Site) -> None:
    tried(site, TimeoutError("no answer"), KeyError("vat_rate"))
    visitor = visit("/", viewport={"width": 1000, "height": 900})
    visitor.open(f"/jobs/{found(visitor, task='stumble')}")
    page = visitor.page
    expect(page.locator("details.attempt")).to_have_count(2)
    expect(page.get_by_label("Traceback")).to_have_count(1)  # the newest is open
    expect(
        page.get_by_text("Attempt 2 compared with attempt 1: a different error, the same worker.")
    ).to_be_visible()
    page.locator("summary", has_text="Attempt 1").click()
    expect(page.get_by_label("Traceback")).to_have_count(2)
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(page.get_by_role("region", name="Attempt 1, left")).to_be_visible()


# --- while it runs -------------------------------------------------------------------------------

BAKERY = """
import asyncio
import pathlib

from rota import Context, Rota

app = Rota(poll_interval_ms=50)


@app.task(name="bake", queue="kitchen")
async def bake(ctx: Context, folder: str) -> dict:
    for step in (1, 2):
        ctx.progress(40 * step, f"step {step}")
        ctx.log(f"began step {step}")
        while not (pathlib.Path(folder) / str(step)).exists():
            await asyncio.sleep(0.02)
    return {"loaves": [12, {"burnt": 0}]}
"""


@pytest.fixture
def baking(visit: Visit, site: Site, tmp_path: Path) -> Iterator[Visitor]:
    """A job run by a worker in its own process, which continues when files appear."""
    (tmp_path / "bakery.py").write_text(BAKERY)
    with started("worker", "--app", "bakery:app", "--url", site.rota.settings.url, cwd=tmp_path):
        visitor = visit()
        visitor.open(f"/jobs/{site.job('bake', queue='kitchen', payload={'folder': str(tmp_path)})}")
        yield visitor


def test_progress_and_log_lines_appear_while_a_job_runs(baking: Visitor, tmp_path: Path) -> None:
    page = baking.page
    log = page.locator(".live-log")
    expect(page.get_by_role("progressbar", name="Progress")).to_have_attribute("value", "40")
    expect(page.locator(".progress")).to_contain_text("40 % step 1")
    expect(log.get_by_role("table", name="1 log line")).to_contain_text("began step 1")
    (tmp_path / "1").touch()
    expect(page.locator(".progress")).to_contain_text("80 % step 2")
    expect(log.get_by_role("table", name="2 log lines")).to_contain_text("began step 2")
    (tmp_path / "2").touch()
    expect(page.locator(".page-header")).to_contain_text("succeeded")
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.get_by_role("group", name="Output")).to_contain_text("burnt")


def test_running_job_is_asked_to_stop(baking: Visitor) -> None:
    page = baking.page
    expect(page.locator(".page-header")).to_contain_text("running")
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog", name="Cancel bake")
    expect(dialog).to_contain_text("It is asked to stop")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator(".page-header")).to_contain_text("cancelled")


# --- content -------------------------------------------------------------------------------


def test_payload_is_a_tree_that_folds(visit: Visit, site: Site) -> None:
    site.job("tree", payload={"order": {"lines": [{"sku": "A1", "n": 2}, {"sku": "B2", "n": 1}]}})
    payload = opened(visit, task="tree").page.get_by_role("group", name="Payload")
    payload.get_by_role("button", name="2 fields").nth(1).click()  # what lies deep is folded at first
    expect(payload).to_contain_text('sku: "B2"')
    expect(payload).not_to_contain_text("A1")
    payload.get_by_role("button", expanded=True).nth(1).click()
    expect(payload).not_to_contain_text("B2")


def test_viewer_sees_no_actions_on_a_job(visit: Visit) -> None:
    visitor = visit(role="viewer")
    visitor.open(f"/jobs/{found(visitor, task='charge_card')}")
    expect(visitor.page.locator(".page-header").get_by_role("button")).to_have_count(0)


def test_log_lines_appear_with_their_attempt(visit: Visit) -> None:
    page = opened(visit, task="poll_feed").page
    expect(page.get_by_role("table", name="1 log line")).to_contain_text("asked the partner")


def test_large_numbers_stay_exact_and_only_web_links_are_links(visit: Visit) -> None:
    page = opened(visit, task="send_receipt", tenant="acme").page
    output = page.get_by_role("group", name="Output")
    expect(output).to_contain_text(str(BIG))
    link = output.get_by_role("link")
    expect(link).to_have_attribute("href", "https://example.com/receipts/1")
    expect(link).to_have_attribute("rel", "noopener noreferrer")


def test_stored_markup_is_shown_as_text(visit: Visit) -> None:
    page = opened(visit, tenant="globex").page
    expect(page.get_by_role("group", name="Payload")).to_contain_text("<b>bold</b>")
    assert page.locator("main b", has_text="bold").filter(has_not_text="<b>").count() == 0


def test_job_shows_why_it_is_not_running_and_offers_a_remedy(visit: Visit) -> None:
    visitor = opened(visit, tenant="globex")
    why = visitor.page.get_by_role("region", name="Why is it not running?")
    expect(why).to_contain_text("It is not due until")
    why.get_by_role("button", name="Make due now").click()
    expect(why).not_to_contain_text("It is not due until")
    expect(why).to_contain_text("No worker is running")


def test_failed_job_is_retried(visit: Visit) -> None:
    visitor = opened(visit, task="charge_card")
    visitor.page.get_by_role("button", name="Retry", exact=True).click()
    expect(visitor.page.locator(".page-header")).to_contain_text("queued")
    expect(visitor.page.get_by_role("region", name="History")).to_contain_text("job.retry")


def quarantined(site: Site) -> str:
    """A job whose worker stopped responding, and that may not be repeated."""
    site.rota.task(name="explodes", max_attempts=1)(lambda: None)

    async def act() -> str:
        job = await site.rota.enqueue("explodes", {})
        store = await site.rota.stores.get()
        want = ClaimRequest(worker="w1", limit=1, lease_s=0, tasks=("explodes",))
        assert await claim(store, want, None)
        await rescue(store, site.rota.clock, "w2", 30, lambda *_: None)
        return job.id

    return site.do(act)


def test_quarantined_job_says_so_and_is_released_after_a_question(visit: Visit) -> None:
    visitor = visit()
    visitor.open(f"/jobs/{quarantined(visitor.site)}")
    page = visitor.page
    expect(page.locator(".page-header")).to_contain_text("quarantined")
    page.get_by_role("button", name="Retry", exact=True).click()
    dialog = page.get_by_role("dialog", name="Release explodes")
    expect(dialog).to_contain_text("may end another worker")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator(".page-header")).to_contain_text("quarantined")
    page.get_by_role("button", name="Retry", exact=True).click()
    dialog.get_by_role("button", name="Retry").click()
    expect(page.locator(".page-header")).to_contain_text("queued")


def test_job_is_retried_with_an_edited_payload(visit: Visit) -> None:
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


def test_queued_job_is_moved_to_another_priority_and_queue(visit: Visit) -> None:
    visitor = opened(visit, task="render_invoice")
    page = visitor.page
    page.get_by_role("button", name="Move").click()
    dialog = page.get_by_role("dialog", name="Move render_invoice")
    dialog.get_by_label("Priority").fill("7")
    dialog.get_by_label("Queue").fill("urgent")
    dialog.get_by_role("button", name="Move").click()
    facts = page.get_by_role("region", name="Details")
    expect(facts.get_by_role("link", name="urgent")).to_be_visible()
    job = visitor.site.do(lambda: visitor.site.operations().jobs.show(page.url.rsplit("/", 1)[1]))
    assert (job.priority, job.queue) == (7, "urgent")


def test_job_due_later_is_run_now(visit: Visit) -> None:
    visitor = opened(visit, tenant="globex")
    visitor.page.get_by_role("button", name="Run now").click()
    expect(visitor.page.get_by_role("button", name="Run now")).to_have_count(0)


def test_job_is_cancelled_with_a_reason(visit: Visit) -> None:
    visitor = opened(visit, task="render_invoice")
    page = visitor.page
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog", name="Cancel render_invoice")
    dialog.get_by_label("Reason").fill("not wanted any more")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator(".page-header")).to_contain_text("cancelled")
    expect(page.get_by_role("region", name="History")).to_contain_text("not wanted any more")


def test_deleted_job_leads_back_to_the_list(visit: Visit) -> None:
    visitor = opened(visit, task="render_invoice")
    page = visitor.page
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete render_invoice").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(page.get_by_role("link", name="render_invoice")).to_have_count(0)


def test_job_is_copied_as_a_command_a_request_and_a_program(visit: Visit) -> None:
    visitor = opened(visit, tenant="globex")
    visitor.page.get_by_role("button", name="Copy as").click()
    dialog = visitor.page.get_by_role("dialog", name="Copy as")
    for part in ("rota jobs enqueue send_receipt", "Authorization: Bearer", "await app.enqueue", str(BIG)):
        expect(dialog).to_contain_text(part)


def test_unknown_job_is_an_error(visit: Visit) -> None:
    visitor = visit("/jobs/0195d4e2-6b1c-7d40-9a1e-52c07f9f0b3e")
    expect(visitor.page.get_by_role("alert")).to_contain_text("there is no job")
    visitor.ignore_failed_requests()


def test_change_of_a_job_elsewhere_appears_live(visit: Visit) -> None:
    visitor = opened(visit, task="render_invoice")
    id = found(visitor, task="render_invoice")
    visitor.site.do(lambda: visitor.site.rota.cancel(id, "from elsewhere"))
    expect(visitor.page.locator(".page-header")).to_contain_text("cancelled")


def test_job_shows_its_concurrency_key_units_and_price_and_leads_to_jobs_of_the_key(
    visit: Visit, site: Site
) -> None:
    async def act() -> str:
        job = await site.rota.enqueue(
            "send_receipt", {"order_id": 1}, concurrency_key="account:42", units=12, price=2.5, delay=3600
        )
        return str(job.id)

    page = visit(f"/jobs/{site.do(act)}").page
    facts = page.locator(".facts").first
    expect(facts).to_contain_text("12 units")
    expect(facts).to_contain_text("2.50 cents")
    page.get_by_role("link", name="account:42").click()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_job_held_up_by_a_limit_names_it_and_leads_to_it_and_to_the_job_that_holds_it(
    visit: Visit, site: Site
) -> None:
    async def act() -> tuple[str, str]:
        await site.rota.limits.set("key:account:*", running=1)
        first, second = [
            await site.rota.enqueue("send_receipt", {"order_id": i}, concurrency_key="account:42")
            for i in range(2)
        ]
        store = await site.operations().store()
        await claim(store, ClaimRequest(worker="anvil", limit=5, lease_s=3600.0, queues=("mail",)), None)
        return str(first.id), str(second.id)

    holder, held = site.do(act)
    visitor = visit(f"/jobs/{held}")
    why = visitor.page.get_by_role("region", name="Why is it not running?")
    expect(why).to_contain_text("Limit key:account:42 (of key:account:*) is full (1 of 1): held by job")
    expect(why.get_by_role("link", name="View job")).to_have_attribute("href", f"/jobs/{holder}")
    why.get_by_role("link", name="View limit").click()
    expect(visitor.page.get_by_role("form", name="Edit key:account:*")).to_be_visible()
