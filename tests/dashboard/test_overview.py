"""The overview: counts, problems with their remedy, failures by error."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from browser_tools import Visitor
from scene import Visit

from admin.sites import Site
from rota.operate.requests import BulkRequest, FailuresRequest, JobSelector
from rota.testing import drain

expect = pytest.importorskip("playwright.sync_api").expect


def test_counts_link_to_their_jobs(visitor: Visitor) -> None:
    failed = visitor.page.locator(".counts").get_by_role("link", name="Failed")
    expect(failed).to_contain_text("4")
    failed.click()
    expect(visitor.page.locator("tbody tr")).to_have_count(4)


def test_paused_queue_is_a_problem_with_its_reason_and_a_resume_button(visitor: Visitor) -> None:
    problems = visitor.page.get_by_role("region", name="Problems")
    expect(problems).to_contain_text("the provider is down")
    problems.get_by_role("button", name="Resume bulk").click()
    expect(problems).not_to_contain_text("bulk")
    assert visitor.site.do(visitor.site.operations().gates.list).items == []


def test_queue_without_a_worker_is_a_problem(visitor: Visitor) -> None:
    problems = visitor.page.get_by_role("region", name="Problems")
    expect(problems).to_contain_text("No running worker for queue pdf")


def test_failures_are_grouped_and_retried_together(visitor: Visitor) -> None:
    failures = visitor.page.get_by_role("region", name="Failures by error")
    expect(failures.get_by_role("row")).to_have_count(2)  # the head and one group
    failures.get_by_role("button", name=re.compile("^Retry 4")).click()
    visitor.page.get_by_role("dialog", name="Retry 4 jobs?").get_by_role("button", name="Retry 4").click()
    expect(failures).to_contain_text("No failed jobs")


def test_failures_are_shown_as_the_server_groups_them(visitor: Visitor) -> None:
    (group,) = visitor.site.do(lambda: visitor.site.operations().jobs.failures(FailuresRequest())).items
    failures = visitor.page.get_by_role("region", name="Failures by error")
    expect(failures).to_contain_text("KeyError: 'vat_rate'")
    expect(failures.get_by_role("cell", name="4", exact=True)).to_be_visible()
    failures.get_by_role("link", name=group.newest[-6:]).click()
    expect(visitor.page).to_have_url(re.compile(f"/jobs/{group.newest}$"))


def test_errors_beyond_those_shown_are_counted(visit: Visit, site: Site) -> None:
    async def fail(text: str) -> None:
        raise ValueError(text)

    site.rota.task(name="fail", max_attempts=1)(fail)

    async def act() -> None:
        for word in ("ink", "paper", "time", "power", "heat", "light", "room", "string", "glue"):
            await site.rota.enqueue("fail", {"text": f"no {word}"})
        await drain(site.rota)

    site.do(act)
    failures = visit().page.get_by_role("region", name="Failures by error")
    expect(failures.get_by_role("row")).to_have_count(9)  # the head and eight groups
    expect(failures).to_contain_text("And 2 more errors.")


def test_viewer_sees_failures_without_buttons(visit: Visit) -> None:
    failures = visit(role="viewer").page.get_by_role("region", name="Failures by error")
    expect(failures.get_by_role("link", name="KeyError")).to_be_visible()
    expect(failures.get_by_role("button")).to_have_count(0)


def test_tenant_user_sees_own_failures_only(visit: Visit) -> None:
    failures = visit(role="operator", tenant="acme").page.get_by_role("region", name="Failures by error")
    expect(failures).to_contain_text("No failed jobs")


def test_summary_names_problems_and_failed_jobs(visitor: Visitor) -> None:
    """Failed and paused jobs have places of their own: what doctor finds about them is no second problem."""
    problems = visitor.page.get_by_role("region", name="Problems").get_by_role("listitem")
    for text in ("No worker is running", "for queue pdf", "tokens that never expire", "Queue bulk is paused"):
        expect(problems.filter(has_text=text)).to_have_count(1)
    summary = visitor.page.locator(".page-header .summary")
    expect(summary).to_contain_text(re.compile(r"^4 problems\. 4 failed jobs, the latest"))
    expect(summary).to_contain_text(re.compile("The oldest due job has been due for .* in pdf"))


def tidy(site: Site, match: JobSelector) -> None:
    """Without a problem: nothing paused, and these jobs gone."""

    async def act() -> None:
        await site.operations().jobs.bulk(BulkRequest(action="delete", filter=match))
        await site.rota.resume(queue="bulk")

    site.do(act)


def test_summary_is_all_clear_without_problems_and_failures(visit: Visit, site: Site) -> None:
    tidy(site, JobSelector())
    # Only operators see that no worker is running.
    summary = visit(role="viewer").page.locator(".page-header .summary")
    expect(summary).to_have_text("All clear. Nothing is due.")


def test_old_failures_are_counted_without_their_time(visit: Visit, site: Site) -> None:
    tidy(site, JobSelector(task="render_invoice"))
    page = visit(role="viewer").page
    summary = page.locator(".page-header .summary")
    expect(summary).to_have_text(re.compile("^4 failed jobs, the latest .* ago"))
    page.clock.set_system_time(datetime.now(UTC) + timedelta(hours=2))
    expect(summary).to_have_text("No problems. 4 failed jobs. Nothing is due.")


def test_single_failed_job_is_in_the_singular(visit: Visit, site: Site) -> None:
    group = site.do(lambda: site.operations().jobs.failures(FailuresRequest())).items[0]
    site.do(lambda: site.operations().jobs.bulk(BulkRequest(action="delete", ids=group.ids[1:])))
    page = visit().page
    expect(page.locator(".page-header .summary")).to_contain_text("1 failed job")
    expect(page.locator(".counts").get_by_role("link", name="Failed")).to_contain_text("retry or delete")


def test_remedy_for_a_queue_quotes_its_name(visit: Visit, site: Site) -> None:
    site.job("render_invoice", queue="big prints; rm x")
    problems = visit().page.get_by_role("region", name="Problems")
    expect(problems).to_contain_text("Start one: rota worker -q 'big prints; rm x'")


def test_everything_is_paused_with_a_reason_and_resumed(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_role("button", name="Pause everything").click()
    dialog = page.get_by_role("dialog", name="Pause everything?")
    dialog.get_by_label("Reason").fill("moving house")
    dialog.get_by_label("Type “pause everything” to confirm").fill("pause everything")
    dialog.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("region", name="Problems")).to_contain_text("moving house")
    page.locator(".page-header").get_by_role("button", name="Resume everything").click()
    expect(page.get_by_role("region", name="Problems")).not_to_contain_text("moving house")


def test_range_of_the_chart_is_in_the_address(visitor: Visitor) -> None:
    page = visitor.page
    expect(page.get_by_text("7 jobs finished in 6 hours, 4 failed")).to_be_visible()
    page.get_by_text("24h", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?range=24h$"))
    expect(page.get_by_role("img", name="7 jobs finished in 24 hours, 4 of them failed.")).to_be_visible()


def test_next_runs_name_their_schedules(visitor: Visitor) -> None:
    fires = visitor.page.get_by_role("region", name="Next runs")
    expect(fires.get_by_role("link", name="nightly")).to_be_visible()
    expect(fires.get_by_role("link", name="each_quarter")).to_be_visible()
