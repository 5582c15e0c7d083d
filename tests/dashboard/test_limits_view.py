"""Limits: how full they are, who holds them, and a change in place with its effect in words."""

from __future__ import annotations

import re

import pytest
from browser_tools import Visitor
from rows import cell, row
from scene import Visit

from admin.sites import Site
from rota.model import ClaimRequest, Held, Limit, LimitRule
from rota.store.calls import claim

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
expect = sync_api.expect


def running(site: Site, n: int, queue: str = "halls", key: str | None = None) -> list[str]:
    """Jobs that a worker runs; their ids, the oldest first."""

    async def act() -> list[str]:
        for _ in range(n):
            await site.rota.enqueue("hold", {}, queue=queue, concurrency_key=key)
        store = await site.operations().store()
        ask = ClaimRequest(worker="anvil", limit=n, queues=(queue,), lease_s=3600.0)
        claimed = await claim(store, ask, site.rota.clock.now())
        return [job.id for job in claimed]

    return site.do(act)


def limit(site: Site, name: str, **given: object) -> None:
    site.do(lambda: site.rota.limits.set(name, **given))  # type: ignore[arg-type]


def held(site: Site, name: str) -> Held:
    return site.do(lambda: site.rota.limits.get(name))


def edited(visitor: Visitor, name: str) -> sync_api.Locator:
    visitor.page.get_by_role("button", name=f"Edit {name}").click()
    return visitor.page.get_by_role("form", name=f"Edit {name}")


def test_limit_is_changed_in_place_with_its_effect_in_words_and_undone(visit: Visit, site: Site) -> None:
    jobs = running(site, 3)
    limit(site, "queue:halls", running=3)
    site.job("hold", queue="halls")
    limit(site, "key:openai", rate="600/m", burst=20)
    visitor = visit("/limits", role="operator")
    page = visitor.page
    expect(page.locator(".page-header .summary")).to_have_text(re.compile(r"2 limits\. 1 is full\."))
    expect(cell(visitor, "queue:halls", "In use")).to_contain_text("3 of 3 running")
    expect(cell(visitor, "queue:halls", "Held by")).to_contain_text("3 hold")
    expect(cell(visitor, "queue:halls", "Waiting")).to_contain_text("1 due")
    expect(cell(visitor, "key:openai", "In use")).to_contain_text("600/m, 20 of 20 left")
    form = edited(visitor, "queue:halls")
    expect(form.get_by_label("Running at once")).to_be_focused()
    expect(page.locator(".holders").get_by_role("link").first).to_have_attribute("href", f"/jobs/{jobs[0]}")
    form.get_by_label("Running at once").fill("40")
    expect(form).to_contain_text(
        "At most 40 jobs of queue halls run at once; 3 run now: nothing changes for them."
    )
    form.get_by_label("Running at once").fill("2")
    expect(form).to_contain_text("they finish, and no other starts until fewer than 2 run")
    form.get_by_label("Rate").fill("fast")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("alert")).to_contain_text("is not a rate")
    visitor.ignore_failed_requests()
    form.get_by_label("Rate").fill("")
    form.get_by_label("Rate").press("Enter")
    expect(form).to_have_count(0)
    expect(page.get_by_role("button", name="Edit queue:halls")).to_be_focused()
    expect(cell(visitor, "queue:halls", "In use")).to_contain_text("3 of 2 running")
    assert held(site, "queue:halls").most == 2
    page.get_by_role("button", name="Undo").click()
    expect(cell(visitor, "queue:halls", "In use")).to_contain_text("3 of 3 running")


def test_first_limit_is_set_and_removed(visit: Visit, site: Site) -> None:
    running(site, 2)
    visitor = visit("/limits")
    page = visitor.page
    expect(page.get_by_role("heading", name="No limits yet")).to_be_visible()
    page.get_by_role("button", name="Set a limit").click()
    dialog = page.get_by_role("dialog", name="Set a limit")
    dialog.get_by_label("Name").fill("halls")
    dialog.get_by_label("Running at once").fill("1")
    expect(dialog).to_contain_text("One job of queue halls runs at a time, in order; 2 run now: they finish")
    dialog.get_by_role("button", name="Set limit").click()
    expect(cell(visitor, "queue:halls", "In use")).to_contain_text("2 of 1 running")
    page.get_by_role("button", name="Edit queue:halls").focus()
    page.keyboard.press("e")
    page.get_by_role("button", name="Remove limit").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove limit").click()
    expect(page.get_by_role("heading", name="No limits yet")).to_be_visible()


def test_limit_of_the_code_is_shown_as_such_and_returned_to(visit: Visit, site: Site) -> None:
    async def declare() -> None:
        rule = LimitRule(name="task:call_crm", declared=Limit(running=5, rate="100/m"))
        await (await site.operations().store()).put_rules([rule], site.rota.clock.now())

    site.do(declare)
    limit(site, "task:call_crm", running=9)
    visitor = visit("/limits")
    expect(cell(visitor, "task:call_crm", "Set in")).to_contain_text(
        "code: at most 5 at once, 100 per minute"
    )
    edited(visitor, "task:call_crm").get_by_role("button", name="Use the code's").click()
    visitor.page.get_by_role("dialog").get_by_role("button", name="Use the code's").click()
    expect(cell(visitor, "task:call_crm", "In use")).to_contain_text("0 of 5 running")
    expect(cell(visitor, "task:call_crm", "Set in")).to_have_text("code")


def test_family_shows_its_fullest_keys_and_who_holds_them(visit: Visit, site: Site) -> None:
    limit(site, "key:account:*", running=1)
    (job,) = running(site, 1, key="account:42")
    visitor = visit("/limits", role="viewer")
    expect(row(visitor, "key:account:*")).to_contain_text("each key on its own, in order")
    keys = visitor.page.get_by_role("region", name="Keys of key:account:*")
    expect(keys.get_by_role("listitem")).to_have_count(1)
    expect(keys).to_contain_text("1 of 1 running")
    expect(keys.get_by_role("link", name="hold")).to_have_attribute("href", f"/jobs/{job}")
    expect(visitor.page.get_by_role("button", name=re.compile("^(Edit|Set)"))).to_have_count(0)


def test_tenant_sees_its_own_limit_and_changes_none(visit: Visit, site: Site) -> None:
    limit(site, "tenant:globex", running=20)
    limit(site, "queue:mail", running=20)
    visitor = visit("/limits", role="operator", tenant="globex")
    expect(visitor.page.locator("table.limits tbody tr")).to_have_count(1)
    expect(cell(visitor, "tenant:globex", "In use")).to_contain_text("0 of 20 running")
    expect(visitor.page.get_by_role("button", name=re.compile("^(Edit|Set)"))).to_have_count(0)


def test_limit_changed_elsewhere_appears_live(visit: Visit, site: Site) -> None:
    limit(site, "queue:halls", running=3)
    visitor = visit("/limits")
    expect(cell(visitor, "queue:halls", "In use")).to_contain_text("0 of 3 running")
    running(site, 2)
    expect(cell(visitor, "queue:halls", "In use")).to_contain_text("2 of 3 running")
    limit(site, "queue:halls", running=30)
    expect(cell(visitor, "queue:halls", "In use")).to_contain_text("2 of 30 running")


def test_queue_page_shows_its_limit(visit: Visit, site: Site) -> None:
    running(site, 2)
    limit(site, "queue:halls", running=2)
    page = visit("/queues/halls").page
    expect(page.get_by_role("img", name="2 of 2 running")).to_be_visible()
    page.get_by_role("link", name="Change limit").click()
    expect(page.get_by_role("form", name="Edit queue:halls")).to_be_visible()
