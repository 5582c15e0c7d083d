"""Settings: who looks and how, tokens and users, what is kept and hidden, and every setting's source."""

from __future__ import annotations

from browsing import Visitor
from playwright.sync_api import Locator, expect
from scene import Visit

from admin.sites import Site, eventually

PASSWORD = "a long enough sentence"


def tokens(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("table", name="API tokens")


def named(site: Site) -> set[str]:
    return {token.name for token in site.do(lambda: site.desk().access.tokens()).items}


def test_a_token_is_made_shown_once_and_works(visit: Visit, site: Site) -> None:
    visitor = visit("/settings")
    visitor.page.get_by_role("button", name="Create token").click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("night shift")
    dialog.get_by_role("radio", name="operator").check()
    dialog.get_by_label("Tenant").fill("acme")
    dialog.get_by_label("Expires after").select_option(label="7 days")
    dialog.get_by_role("button", name="Create token").click()
    expect(dialog.get_by_role("heading", name="Copy the API token now")).to_be_visible()
    text = dialog.locator("[data-token]").inner_text()
    me = site.get("/api/admin/me", token=text).json
    assert (me["role"], me["tenant"]) == ("operator", "acme")
    assert me["name"].startswith("token:night shift#")
    dialog.get_by_role("button", name="Done").click()
    expect(tokens(visitor)).to_contain_text("night shift")
    assert text not in visitor.page.content()


def test_a_token_is_revoked_only_after_the_effect_was_told(visit: Visit, site: Site) -> None:
    text = site.token("viewer", "acme")
    visitor = visit("/settings")
    visitor.page.get_by_role("button", name="Revoke viewer of acme").click()
    dialog = visitor.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Requests with it are denied")
    dialog.get_by_role("button", name="Cancel").click()
    assert site.get("/api/admin/me", token=text).status == 200
    visitor.page.get_by_role("button", name="Revoke viewer of acme").click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(tokens(visitor)).not_to_contain_text("viewer of acme")
    assert site.get("/api/admin/me", token=text).status == 401


def test_a_user_is_added_and_removed(visit: Visit, site: Site) -> None:
    visitor = visit("/settings")
    visitor.page.get_by_role("button", name="Create user").click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("ada")
    dialog.get_by_label("Password").fill(PASSWORD)
    dialog.get_by_role("button", name="Create user").click()
    users = visitor.page.get_by_role("table", name="Users")
    expect(users).to_contain_text("ada")
    assert site.post("/api/session", {"user": "ada", "password": PASSWORD}).status == 200
    visitor.page.get_by_role("button", name="Delete ada").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(visitor.page.get_by_role("heading", name="No password users yet")).to_be_visible()
    assert site.post("/api/session", {"user": "ada", "password": PASSWORD}).status == 401


def test_a_short_password_is_refused_before_it_is_sent(visit: Visit, site: Site) -> None:
    visitor = visit("/settings")
    visitor.page.get_by_role("button", name="Create user").click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("ada")
    dialog.get_by_label("Password").fill("short")
    dialog.get_by_role("button", name="Create user").click()
    assert dialog.get_by_label("Password").evaluate("(field) => field.validity.tooShort")
    assert not site.do(lambda: site.desk().access.users()).items


def test_every_setting_is_told_with_its_source_and_the_changed_ones_alone(visit: Visit) -> None:
    visitor = visit("/settings")
    settings = visitor.page.get_by_role("table", name="Settings")
    row = settings.get_by_role("row").filter(has_text="retention_failed_days")
    expect(row).to_contain_text("30")
    expect(row).to_contain_text("default")
    visitor.page.get_by_text("Changed 1", exact=True).click()
    expect(settings.locator("tbody tr")).to_have_count(1)
    expect(settings).to_contain_text("given")
    assert visitor.page.url.endswith("?settings=changed")


def test_retention_and_masking_are_told_in_words(visit: Visit) -> None:
    visitor = visit("/settings")
    expect(visitor.page.get_by_role("region", name="Retention")).to_contain_text("Failed jobs30 days")
    expect(visitor.page.get_by_role("region", name="Masked fields")).to_contain_text("*password*")


def test_the_chosen_theme_is_remembered(visit: Visit) -> None:
    visitor = visit("/settings")
    look = visitor.page.get_by_role("region", name="Appearance")
    look.get_by_text("Dark", exact=True).click()
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", "dark")
    visitor.open("/jobs")
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_token_made_elsewhere_appears_by_itself(visit: Visit, site: Site) -> None:
    visitor = visit("/settings")
    site.token("viewer", "globex")
    expect(tokens(visitor)).to_contain_text("viewer of globex", timeout=15_000)
    eventually(lambda: "viewer of globex" in named(site), "the token is stored")


def test_somebody_without_admin_sees_who_they_are_and_no_more(visit: Visit) -> None:
    visitor = visit("/settings", role="viewer", tenant="acme")
    you = visitor.page.get_by_role("region", name="Account")
    expect(you).to_contain_text("viewer")
    expect(you).to_contain_text("acme")
    expect(visitor.page.get_by_role("table")).to_have_count(0)
    expect(visitor.page.get_by_role("button", name="Create token")).to_have_count(0)
