"""The overview: counts, problems with their remedy, failures by what went wrong."""

from __future__ import annotations

import re

import pytest
from browsing import Visitor

expect = pytest.importorskip("playwright.sync_api").expect


def test_counts_lead_to_the_jobs_they_count(visitor: Visitor) -> None:
    failed = visitor.page.locator(".counts").get_by_role("link", name="Failed")
    expect(failed).to_contain_text("4")
    failed.click()
    expect(visitor.page.locator("tbody tr")).to_have_count(4)


def test_a_paused_queue_is_a_problem_with_its_reason_and_is_resumed_there(visitor: Visitor) -> None:
    problems = visitor.page.get_by_role("region", name="Problems")
    expect(problems).to_contain_text("the provider is down")
    problems.get_by_role("button", name="Resume bulk").click()
    expect(problems).not_to_contain_text("bulk")
    assert visitor.site.do(visitor.site.desk().gates.list).items == []


def test_a_queue_that_nobody_serves_is_a_problem(visitor: Visitor) -> None:
    problems = visitor.page.get_by_role("region", name="Problems")
    expect(problems).to_contain_text("No live worker serves queue pdf")


def test_failures_are_grouped_and_retried_together(visitor: Visitor) -> None:
    failures = visitor.page.get_by_role("region", name="Failures by error")
    expect(failures.get_by_role("row")).to_have_count(2)  # the head and one group
    failures.get_by_role("button", name=re.compile("^Retry 4")).click()
    visitor.page.get_by_role("dialog", name="Retry 4 jobs?").get_by_role("button", name="Retry 4").click()
    expect(failures).to_contain_text("No job has failed for good")


def test_everything_is_paused_with_a_reason_and_resumed(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_role("button", name="Pause everything").click()
    dialog = page.get_by_role("dialog", name="Pause everything?")
    dialog.get_by_label("Reason").fill("moving house")
    dialog.get_by_label("Type “pause everything” to go on").fill("pause everything")
    dialog.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("region", name="Problems")).to_contain_text("moving house")
    page.locator(".lede").get_by_role("button", name="Resume everything").click()
    expect(page.get_by_role("region", name="Problems")).not_to_contain_text("moving house")


def test_the_range_of_the_chart_is_in_the_address(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_text("24h", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?range=24h$"))
    expect(
        page.get_by_role("img", name="Jobs that ended within 24 hours: 7, of which 4 failed.")
    ).to_be_visible()


def test_next_fires_name_their_schedules(visitor: Visitor) -> None:
    fires = visitor.page.get_by_role("region", name="Next fires")
    expect(fires.get_by_role("link", name="nightly")).to_be_visible()
    expect(fires.get_by_role("link", name="each_quarter")).to_be_visible()
