"""Settings: account, API tokens, users, retention, masked fields, and every setting with its source."""

from __future__ import annotations

from browser_tools import Visitor
from playwright.sync_api import Locator, expect
from scene import Visit

from admin.sites import Site, eventually
from rota.operate.requests import PutUserRequest

PASSWORD = "a long enough sentence"


def tokens(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("table", name="API tokens")


def named(site: Site) -> set[str]:
    return {token.name for token in site.do(lambda: site.operations().access.tokens()).items}


def test_token_is_created_shown_once_and_works(visit: Visit, site: Site) -> None:
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


def test_token_is_revoked_after_confirmation(visit: Visit, site: Site) -> None:
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


def test_user_is_created_and_deleted(visit: Visit, site: Site) -> None:
    visitor = visit("/settings")
    visitor.page.get_by_role("button", name="Create user").click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("ada")
    dialog.get_by_label("Password", exact=True).fill(PASSWORD)
    dialog.get_by_label("Changed by the user").select_option(label="If they like")
    dialog.get_by_role("button", name="Create user").click()
    users = visitor.page.get_by_role("table", name="Users")
    expect(users).to_contain_text("ada")
    assert site.post("/api/session", {"user": "ada", "password": PASSWORD}).status == 200
    visitor.page.get_by_role("button", name="Delete ada").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(visitor.page.get_by_role("heading", name="No password users yet")).to_be_visible()
    assert site.post("/api/session", {"user": "ada", "password": PASSWORD}).status == 401


def test_short_password_is_rejected_before_it_is_sent(visit: Visit, site: Site) -> None:
    visitor = visit("/settings")
    visitor.page.get_by_role("button", name="Create user").click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("ada")
    dialog.get_by_label("Password").fill("short")
    dialog.get_by_role("button", name="Create user").click()
    assert dialog.get_by_label("Password").evaluate("(field) => field.validity.tooShort")
    assert not site.do(lambda: site.operations().access.users()).items


def test_settings_show_their_source_and_can_be_limited_to_changed_ones(visit: Visit) -> None:
    visitor = visit("/settings")
    settings = visitor.page.get_by_role("table", name="Settings")
    row = settings.get_by_role("row").filter(has_text="retention_failed_days")
    expect(row).to_contain_text("30")
    expect(row).to_contain_text("default")
    visitor.page.get_by_text("Changed 1", exact=True).click()
    expect(settings.locator("tbody tr")).to_have_count(1)
    expect(settings).to_contain_text("given")
    assert visitor.page.url.endswith("?settings=changed")


def test_retention_and_masked_fields_are_shown(visit: Visit) -> None:
    visitor = visit("/settings")
    expect(visitor.page.get_by_role("region", name="Retention")).to_contain_text("Failed jobs30 days")
    expect(visitor.page.get_by_role("region", name="Masked fields")).to_contain_text("*password*")


def test_theme_choice_is_remembered(visit: Visit) -> None:
    visitor = visit("/settings")
    look = visitor.page.get_by_role("region", name="Appearance")
    look.get_by_text("Dark", exact=True).click()
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", "dark")
    visitor.open("/jobs")
    expect(visitor.page.locator("html")).to_have_attribute("data-theme", "dark")


def test_token_created_elsewhere_appears_live(visit: Visit, site: Site) -> None:
    visitor = visit("/settings")
    site.token("viewer", "globex")
    expect(tokens(visitor)).to_contain_text("viewer of globex", timeout=15_000)
    eventually(lambda: "viewer of globex" in named(site), "the token is stored")


def test_user_without_admin_sees_only_their_account(visit: Visit) -> None:
    visitor = visit("/settings", role="viewer", tenant="acme")
    you = visitor.page.get_by_role("region", name="Account")
    expect(you).to_contain_text("viewer")
    expect(you).to_contain_text("acme")
    expect(visitor.page.get_by_role("table")).to_have_count(1)  # their sessions
    expect(visitor.page.get_by_role("button", name="Create token")).to_have_count(0)


def test_user_chooses_a_password_changes_it_and_ends_other_sessions(visitor: Visitor, site: Site) -> None:
    request = PutUserRequest(password=PASSWORD, role="viewer", must_change=True)
    site.do(lambda: site.operations().access.put_user("ada", request))
    page, visitor.errors_expected = visitor.page, True
    visitor.context.clear_cookies()
    page.goto(f"{site.server.url}/settings")
    page.get_by_role("button", name="Use a password").click()
    page.get_by_label("User").fill("ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("New password").fill("passwordpassword")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("form")).to_contain_text("the password repeats one part")
    page.get_by_label("New password").fill("my own long sentence")
    page.get_by_role("button", name="Sign in").click()

    sessions = page.get_by_role("table", name="Sessions")
    expect(sessions).to_contain_text("this one")
    elsewhere = {"user": "ada", "password": "my own long sentence"}
    assert site.post("/api/session", elsewhere).status == 200
    page.reload()
    expect(sessions.get_by_role("button", name="End the session of user:ada")).to_have_count(2)
    page.get_by_role("button", name="Sign out elsewhere").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign out elsewhere").click()
    expect(page.locator("body")).to_contain_text("Ended 1 session.")
    expect(sessions.get_by_role("button", name="End the session of user:ada")).to_have_count(1)

    page.get_by_role("button", name="Change password").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Current password").fill("not this one at all")
    dialog.get_by_label("New password").fill("yet another long sentence")
    dialog.get_by_role("button", name="Change password").click()
    expect(dialog).to_contain_text("This is not your password.")
    dialog.get_by_label("Current password").fill("my own long sentence")
    dialog.get_by_role("button", name="Change password").click()
    expect(page.locator("body")).to_contain_text("Your password is changed")
    assert site.post("/api/session", {**elsewhere, "password": "yet another long sentence"}).status == 200


def test_token_is_rotated_and_the_old_secret_ends(visit: Visit, site: Site) -> None:
    old = site.token("viewer", "acme")
    visitor = visit("/settings")
    visitor.page.get_by_role("button", name="Rotate viewer of acme").click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_label("The old secret stays valid for").select_option(label="not at all")
    dialog.get_by_role("button", name="Rotate").click()
    new = dialog.locator("[data-token]").inner_text()
    assert site.get("/api/admin/me", token=old).status == 401
    assert site.get("/api/admin/me", token=new).status == 200
