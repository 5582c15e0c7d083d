"""Secrets stay secret: in logs, responses, metrics, the audit log, the database and the sources."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from sites import API, Browser, Sites

import rota.admin
import rota.operate
from rota.admin.routes import ROUTES

PASSWORD = "canary-password-of-ada"
SECRET = "canary-in-a-payload"
ADMIN = Path(rota.admin.__file__).parent
SECRETS = r"(token|secret|csrf|hash|signature|password|code|digest)"


def test_no_secret_appears_in_logs_responses_metrics_audit_or_the_database(
    sites: Sites, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        site = sites()
        token = site.token()
        site.user("ada", PASSWORD)
        browser = Browser(site)
        assert browser.sign_in(user="ada", password=PASSWORD).status == 200
        assert browser.sign_in(user="ada", password=f"{PASSWORD}x").status == 401
        assert site.post("/api/session", {"token": token}).status == 200
        code = site.server.admin.links.new()
        assert site.post("/api/session", {"once": code}).status == 200
        job = site.post(f"{API}/jobs", {"task": "work", "payload": {"password": SECRET}}, token).json["id"]
        site.post(f"{API}/jobs/{job}/cancel", {}, token)
        shown = [site.get("/metrics", token).body, site.get("/api/session").body]
        shown += [
            site.get(API + route.path.replace("{id}", job), token).body
            for route in ROUTES
            if route.method == "GET"
        ]
    session = browser.cookie.partition("=")[2]
    hidden = (token.split("_", 2)[2], PASSWORD, SECRET, session, browser.csrf, code)
    for text in (caplog.text, b"".join(shown).decode()):
        assert not [one for one in hidden if one in text]
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    kept = {SECRET, browser.csrf}  # the payload itself, and what the browser must prove to know
    assert not [one for one in hidden if one.encode() in stored and one not in kept]


def test_database_file_is_readable_by_its_owner_only(sites: Sites, tmp_path: Path) -> None:
    sites().token()
    modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.iterdir()}
    assert modes and not any(modes.values()), modes


OPERATE = Path(rota.operate.__file__).parent
SECRET_KEEPERS = ("credentials", "passwords", "tokens", "users", "sign_in_limits")


def test_secrets_are_compared_in_constant_time_only() -> None:
    compared = re.compile(rf"(\w*{SECRETS}\w*(\(\w*\))? [=!]= |[=!]= \w*{SECRETS}\w*\b)", re.I)
    for path in [*ADMIN.glob("*.py"), *(OPERATE / f"{name}.py" for name in SECRET_KEEPERS)]:
        for line in path.read_text().splitlines():
            assert not compared.search(line), (path.name, line)


def test_no_page_creates_markup_from_strings() -> None:
    parsed = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function")
    for path in (ADMIN / "docs").iterdir():
        assert not parsed.search(path.read_text()), path.name
        assert not re.search(r"https?://", path.read_text()), path.name


def test_pages_have_no_inline_script_or_style() -> None:
    for path in ADMIN.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", text, re.I), path
