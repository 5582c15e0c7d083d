"""The next 24 hours of schedules: how many runs, how many at once, what is left out."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from scene import Visit
from timetable import caught_up, clear, make, overdue

from admin.sites import Site

expect = pytest.importorskip("playwright.sync_api").expect


def once(site: Site, name: str, hours: float) -> None:
    """A schedule that fires a single time, on a full minute."""
    at = site.rota.clock.now().replace(second=0, microsecond=0) + timedelta(hours=hours)
    make(site, name, at=at)


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        ((30,), r"No runs\."),
        ((2,), r"1 run, at \d\d:\d\d\."),
        ((2, 2), r"2 runs, both at \d\d:\d\d\."),
        ((2, 3), r"2 runs, one after the other\."),
        ((2, 2, 3), r"3 runs\. No three of them at the same time\."),
        ((2, 2, 2), r"3 runs\. 3 at once at \d\d:\d\d: s0, s1, s2\. Jitter would spread them\."),
    ],
)
def test_runs_of_the_next_day_are_summarised(
    visit: Visit, site: Site, hours: tuple[int, ...], words: str
) -> None:
    clear(site)
    for i, hour in enumerate(hours):
        once(site, f"s{i}", hour)
    ahead = visit("/schedules").page.get_by_role("region", name="Next 24 hours")
    expect(ahead.locator("p")).to_have_text(re.compile(f"^{words}$"))


def test_frequent_schedule_is_named_and_left_out_of_the_map(visit: Visit, site: Site) -> None:
    clear(site)
    make(site, "pulse", every=60)
    ahead = visit("/schedules").page.get_by_role("region", name="Next 24 hours")
    expect(ahead).to_contain_text("Not shown: pulse (more than 200 runs)")
    expect(ahead.locator("p")).to_have_text("No other runs.")


def test_late_schedule_and_catch_up_runs_are_distinct(visit: Visit, site: Site) -> None:
    """Late: its run has not started yet. Caught up: it was missed, and has run since."""
    clear(site)
    make(site, "hourly", cron="0 * * * *")
    caught_up(site, "hourly")
    make(site, "slow")
    overdue(site, "slow")
    page = visit("/schedules").page
    expect(page.get_by_role("row", name=re.compile("slow")).locator(".badge")).to_contain_text("late")
    strip = page.get_by_role("row", name=re.compile("hourly")).locator(".strip")
    expect(strip).to_have_accessible_name(re.compile(r"^Last (\d) runs, 0 failed, \1 caught up$"))
    expect(strip.locator(".missed").first).to_have_css("fill", "none")
