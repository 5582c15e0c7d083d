"""Request limits: per credential and per address, at a time and per second; probes are exempt."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sites import API, DEADLINE_S, Answer, Site, Sites

from rota.admin import limits
from rota.admin.limits import RequestLimits, network
from rota.admin.problems import Problem
from rota.admin.server import Listen
from rota.config import Settings
from rota.core.schedules import describe
from rota.testing import FakeClock

FEW = Settings(admin_requests_in_flight=2, admin_requests_per_s=4.0)


def of(clock: FakeClock, settings: Settings = FEW) -> RequestLimits:
    return RequestLimits(clock, settings)


async def test_requests_beyond_the_rate_are_told_when_to_come_back(clock: FakeClock) -> None:
    known = of(clock)
    for _ in range(20):  # five seconds' worth at once
        ticket = known.ticket()
        await ticket.enter_credential("token:a")
        ticket.leave()
    with pytest.raises(Problem, match=r"more than 4 requests per second.*admin_requests_per_s") as refused:
        await known.ticket().enter_credential("token:a")
    assert (refused.value.status, refused.value.code) == (429, "too_many_requests")
    assert refused.value.headers == {"Retry-After": "1"}
    await known.ticket().enter_credential("token:b")  # others are not affected
    clock.advance(1)
    for _ in range(4):
        ticket = known.ticket()
        await ticket.enter_credential("token:a")
        ticket.leave()
    with pytest.raises(Problem):
        await known.ticket().enter_credential("token:a")


async def test_more_at_a_time_wait_for_their_turn_and_many_more_are_refused(clock: FakeClock) -> None:
    known = of(clock, Settings(admin_requests_in_flight=2, admin_requests_per_s=1000.0))
    first = [known.ticket() for _ in range(2)]
    for ticket in first:
        await ticket.enter_credential("token:a")
    waiting = [asyncio.create_task(known.ticket().enter_credential("token:a")) for _ in range(16)]
    await asyncio.sleep(0)
    with pytest.raises(Problem, match="more than 2 requests at a time"):
        await known.ticket().enter_credential("token:a")
    await known.ticket().enter_credential("token:b")
    assert not any(one.done() for one in waiting)
    first[0].leave()
    first[0].leave()  # twice is once
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert sum(one.done() for one in waiting) == 1
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_turn_that_does_not_come_is_a_refusal(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WAIT_S", 0.01)
    known = of(clock)
    for _ in range(2):
        await known.ticket().enter_credential("token:a")
    with pytest.raises(Problem, match="more than 2 requests at a time"):
        await known.ticket().enter_credential("token:a")


async def test_an_address_may_have_four_times_as_many(clock: FakeClock) -> None:
    known = of(clock)
    share = known.share("address:x", limits.ADDRESS)
    assert (share.at_once, share.per_s) == (8, 16.0)


async def test_what_is_remembered_is_bounded(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_KNOWN", 10)
    known = of(clock)
    busy = known.ticket()
    await busy.enter_credential("token:busy")
    for number in range(100):
        ticket = known.ticket()
        await ticket.enter_address(f"192.0.2.{number}")
        ticket.leave()
    assert len(known._shares) <= 11
    assert "token:busy" in known._shares  # it has a request under way


@pytest.mark.parametrize(
    ("address", "known_as"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("unknown", "unknown"),
    ],
)
def test_a_network_of_ipv6_is_one_address(address: str, known_as: str) -> None:
    assert network(address) == known_as


# --- over HTTP -----------------------------------------------------------------------------------


def test_a_refusal_is_a_problem_with_retry_after_and_probes_are_exempt(
    sites: Sites, clock: FakeClock
) -> None:
    site = sites(clock=clock, admin_requests_per_s=2.0)
    token, other = site.token("viewer"), site.token("viewer")
    answers = [site.ask("GET", f"{API}/me", token=token) for _ in range(12)]
    assert [answer.status for answer in answers] == [200] * 10 + [429] * 2
    assert answers[-1].code == "too_many_requests"
    assert answers[-1].headers["Retry-After"] == "1"
    assert site.ask("GET", f"{API}/me", token=other).status == 200
    statuses = [site.ask("GET", "/api/session").status for _ in range(40)]
    assert statuses[-1] == 429  # without a credential, by address
    assert {site.ask("GET", "/healthz").status for _ in range(50)} == {200}
    assert site.ask("GET", "/readyz").status == 200
    clock.advance(10)
    assert site.ask("GET", f"{API}/me", token=token).status == 200


def test_behind_a_proxy_the_address_is_the_clients(sites: Sites, clock: FakeClock) -> None:
    site = sites(clock=clock, admin_requests_per_s=1.0, listen=Listen(port=0, behind_proxy=True))

    def ask(address: str) -> int:
        return site.ask("GET", "/api/session", headers={"X-Forwarded-For": address}).status

    first = [ask("198.51.100.1") for _ in range(30)]
    assert 429 in first
    assert ask("198.51.100.2") != 429


def test_an_untrusted_proxy_on_this_machine_is_not_limited_as_one_address(
    sites: Sites, clock: FakeClock
) -> None:
    site = sites(clock=clock, admin_requests_per_s=1.0)
    behind = {"X-Forwarded-For": "198.51.100.1"}
    assert 429 not in {site.ask("GET", "/api/session", headers=behind).status for _ in range(30)}
    assert 429 in {site.ask("GET", "/api/session").status for _ in range(30)}


def test_streams_take_no_turn(sites: Sites) -> None:
    site = sites(admin_requests_in_flight=1)
    token = site.token("viewer")
    lines = []
    try:
        for _ in range(3):
            line = site.connect()
            line.request("GET", f"{API}/events", headers={"Authorization": f"Bearer {token}"})
            assert line.getresponse().status == 200
            lines.append(line)
        assert site.ask("GET", f"{API}/me", token=token).status == 200
    finally:
        for line in lines:
            line.close()


def test_a_credential_with_all_turns_taken_leaves_the_others_theirs(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def compute(*given: object) -> list[object]:
        begun.release()
        go_on.wait(DEADLINE_S)
        return []

    monkeypatch.setattr(describe, "preview", compute)
    monkeypatch.setattr(limits, "WAIT_S", 0.05)
    site = sites(admin_requests_in_flight=1)
    site.do(lambda: site.rota.schedules.create(name="often", task="work", every=60))
    token, other = site.token("viewer"), site.token("viewer")

    def ask() -> Answer:
        return site.ask("GET", f"{API}/schedules/often/preview", token=token)

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(ask)
        try:
            assert begun.acquire(timeout=DEADLINE_S)
            refused = site.ask("GET", f"{API}/me", token=token)
            assert (refused.status, refused.code) == (429, "too_many_requests")
            assert site.ask("GET", f"{API}/me", token=other).status == 200
        finally:
            go_on.set()
        assert slow.result(DEADLINE_S).status == 200
    assert site.ask("GET", f"{API}/me", token=token).status == 200


def test_the_dashboard_fits(site: Site) -> None:
    """What six tabs ask for at once is answered, if in turns."""
    token = site.token("admin")
    paths = ["/me", "/jobs", "/jobs/stats", "/queues", "/gates", "/schedules", "/schedules/fires", "/workers"]
    with ThreadPoolExecutor(48) as pool:
        asked = [pool.submit(site.ask, "GET", API + path, token=token) for path in paths * 6]
        assert {one.result(DEADLINE_S).status for one in asked} == {200}
