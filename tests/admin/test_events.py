"""Server-sent events: limited to the actor, resumed where they ended, closed with the credential."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
import pytest
from sites import API, Browser, Site, eventually

from rota.admin import events, snapshot_diff
from rota.model import AuditEntry

Listened = Callable[[], "Told"]


class Told(NamedTuple):
    id: int
    kind: str
    data: Any


class Line:
    """One open stream."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.answer = answer
        self.status = answer.status
        self.raw: list[str] = []

    def next(self) -> Told:
        """The next event that has a kind."""
        found: dict[str, str] = {}
        while line := self.answer.readline():
            text = line.decode().rstrip("\n")
            self.raw.append(text)
            if text:
                name, _, value = text.partition(": ")
                found[name] = value
            elif "event" in found:
                return Told(int(found["id"]), found["event"], msgspec.json.decode(found["data"]))
            else:
                found = {}
        raise EOFError

    def until(self, kind: str, holds: Callable[[Any], bool] = lambda data: True) -> Told:
        while True:
            event = self.next()
            if event.kind == kind and holds(event.data):
                return event


@contextmanager
def listening(
    site: Site, token: str | None = None, headers: dict[str, str] | None = None, query: str = ""
) -> Iterator[Line]:
    connection = site.connect()
    sent = dict(headers or {}) | ({"Authorization": f"Bearer {token}"} if token else {})
    connection.request("GET", f"{API}/events{query}", headers=sent)
    try:
        line = Line(connection.getresponse())
        if line.status == 200:
            assert line.answer.readline().startswith(b"retry: ")
        yield line
    finally:
        connection.close()


@pytest.fixture(autouse=True)
def quick_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVERY_S", 0.1)
    monkeypatch.setattr(snapshot_diff, "SCHEDULES_EVERY", 1)


def is_looking(site: Site) -> None:
    """The first look, which only learns what there is, is over."""
    feed = site.server.admin.events.feed
    eventually(lambda: feed.passes > 0, "the feed reads the store")


def test_changes_are_sent_as_api_views_without_payloads(each_site: Site) -> None:
    token = each_site.token()
    with listening(each_site, token) as line:
        assert line.answer.headers["Content-Type"].startswith("text/event-stream")
        is_looking(each_site)
        job = each_site.job(payload={"secret": "canary"})
        event = line.until("job")
        shown = each_site.get(f"{API}/jobs/{job}", token).json
        assert event.data == {**shown, "payload": None, "output": None}
        each_site.post(f"{API}/queues/mail/pause", {"reason": "maintenance"}, token)
        assert line.until("gate").data["id"] == "queue:mail"
        each_site.post(f"{API}/queues/mail/resume", None, token)
        assert line.until("gate").data == {"id": "queue:mail", "gone": True}
        assert line.until("audit", lambda data: data["action"] == "queue.resume")
        each_site.post(f"{API}/schedules", {"name": "nightly", "task": "w", "every": "1h"}, token)
        assert line.until("schedule").data["name"] == "nightly"


def test_stats_are_sent_when_they_change_and_ids_grow(site: Site) -> None:
    with listening(site, site.token()) as line:
        is_looking(site)
        site.job()
        first = line.until("stats")
        site.job()
        second = line.until("stats", lambda data: data["queued"] == 2)
        assert first.data["queued"] == 1 and second.id > first.id


def test_reconnecting_listener_misses_nothing(site: Site) -> None:
    token = site.token()
    with listening(site, token) as line:
        is_looking(site)
        site.job("first")
        seen = line.until("job")
    site.job("second")
    for header, query in (({"Last-Event-ID": str(seen.id)}, ""), ({}, f"?last_event_id={seen.id}")):
        with listening(site, token, header, query) as line:
            event = line.until("job", lambda data: data["task"] == "second")
            assert event.id > seen.id


@pytest.mark.parametrize("last", ["0", "1", "99999999999999999", "nonsense"])
def test_unknown_last_event_id_is_a_reset(site: Site, last: str) -> None:
    with listening(site, site.token(), {"Last-Event-ID": last}) as line:
        assert line.next().kind == "reset"


def test_dropped_events_are_a_reset(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "KEPT", 3)
    feed = site.server.admin.events.feed
    with listening(site, site.token()) as line:
        is_looking(site)
        site.job()
        seen = line.until("job")

        async def flood() -> None:
            for _ in range(10):
                feed._keep(events.ChangeEvent("job", {}, "default"))

        site.do(flood)
    with listening(site, site.token(), {"Last-Event-ID": str(seen.id)}) as line:
        assert line.next().kind == "reset"


def test_tenant_receives_only_its_own_events(each_site: Site) -> None:
    acme, all_of_them = each_site.token("admin", "acme"), each_site.token()
    with listening(each_site, acme) as line, listening(each_site, all_of_them) as other:
        is_looking(each_site)
        each_site.job(tenant="globex")
        each_site.post(f"{API}/gates", {"scope": "tenant", "name": "globex"}, all_of_them)
        each_site.post(
            f"{API}/schedules", {"name": "n", "task": "w", "every": "1h", "tenant": "globex"}, all_of_them
        )
        other.until("schedule")
        each_site.job(tenant="acme")
        assert line.until("stats", lambda data: data["queued"]).data["queued"] == 1
        assert line.until("job").data["tenant"] == "acme"
        assert "globex" not in "\n".join(line.raw)


@pytest.mark.parametrize(
    ("role", "tenant", "hears"),
    [("viewer", None, False), ("operator", None, True), ("operator", "acme", False)],
)
def test_audit_events_require_the_permission(site: Site, role: Any, tenant: str | None, hears: bool) -> None:
    entry = AuditEntry(action="email.sent", at=site.rota.clock.now(), tenant="globex")

    async def write() -> None:
        await (await site.rota.stores.get()).append_audit([entry])

    with listening(site, site.token(role, tenant)) as line:
        is_looking(site)
        site.do(write)
        site.job(tenant="acme")
        seen = set()
        while "stats" not in seen or (hears and "audit" not in seen):
            seen.add(line.next().kind)
        assert ("audit" in seen or '"email.sent"' in "".join(line.raw)) is hears


def test_revoked_token_ends_its_stream_within_seconds(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "RECHECK_S", 0.1)
    token = site.token("viewer")
    browser = Browser(site)
    browser.sign_in(token=site.token("viewer"))
    with listening(site, token) as line, listening(site, None, {"Cookie": browser.cookie}) as other:
        is_looking(site)
        site.do(lambda: site.operations().access.revoke_token(token.split("_")[1]))
        assert browser.ask("DELETE", "/api/session").status == 204
        for one in (line, other):
            with pytest.raises(EOFError):
                while True:
                    one.next()


def test_caller_has_at_most_five_streams(site: Site) -> None:
    token = site.token()
    lines = [listening(site, token) for _ in range(5)]
    for line in lines:
        assert line.__enter__().status == 200
    try:
        with listening(site, token) as sixth:
            assert sixth.status == 429
        with listening(site, site.token()) as another:
            assert another.status == 200
    finally:
        for line in lines:
            line.__exit__(None, None, None)
    feed = site.server.admin.events.feed
    eventually(lambda: feed.listeners == 0, "those who hang up are forgotten")
    with listening(site, token) as again:
        assert again.status == 200


def test_quiet_stream_is_kept_alive(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "ALIVE_S", 0.2)
    with listening(site, site.token("viewer", "empty")) as line:
        eventually(lambda: line.answer.readline().startswith(b":"), "a comment comes")


def test_streams_end_when_the_server_stops(site: Site) -> None:
    with listening(site, site.token()) as line:
        is_looking(site)
        site.do(site.server.admin.close)
        with pytest.raises(EOFError):
            while True:
                line.next()


def test_tenant_does_not_learn_from_events_who_paused_its_schedule(site: Site) -> None:
    acme, platform = site.token("viewer", "acme"), site.token()
    site.post(f"{API}/schedules", {"name": "n", "task": "w", "every": "1h", "tenant": "acme"}, platform)
    with listening(site, acme) as line:
        is_looking(site)
        site.post(f"{API}/gates", {"scope": "schedule", "name": "n", "tenant": "acme"}, platform)
        assert line.until("schedule", lambda data: data["gate"] is not None)
        assert platform.split("_")[1] not in "\n".join(line.raw)
