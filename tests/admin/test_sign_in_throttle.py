"""Limits of failed sign-ins: for guessers, on all servers of a store, never for the owner of an account."""

from __future__ import annotations

import asyncio
from typing import Any

from sites import PASSWORD, Answer, Browser, Site, Sites, audited

from rota.admin.server import Listen
from rota.operate import sign_in_limits
from rota.operate.requests import PutUserRequest
from rota.store.protocol import Store
from rota.testing import FakeClock

RIGHT = {"user": "ada", "password": PASSWORD}
WRONG = {"user": "ada", "password": "wrong password"}
PROXIED = Listen(port=0, behind_proxy=True)


def sign_in(site: Site, said: dict[str, str], address: str, cookie: str = "") -> Answer:
    headers = {"X-Forwarded-For": address, "X-Forwarded-Proto": "https"} | (
        {"Cookie": cookie} if cookie else {}
    )
    return site.post("/api/session", said, headers=headers)


def test_five_failures_block_an_address_for_a_growing_time(timed: Site, clock: FakeClock) -> None:
    timed.user("ada", PASSWORD)
    assert [timed.post("/api/session", WRONG).status for _ in range(5)] == [401] * 5
    waits = []
    for _ in range(6):
        answer = timed.post("/api/session", RIGHT)
        assert (answer.status, answer.code) == (429, "too_many_tries")
        waits.append(int(answer.headers["Retry-After"]))
        clock.advance(waits[-1])
        assert timed.post("/api/session", WRONG).status == 401
    assert waits == sorted(waits) and waits[0] <= 61 and waits[1] > 100 and waits[-1] <= 15 * 60 + 1
    clock.advance(15 * 60 + 1)
    assert timed.post("/api/session", RIGHT).status == 200
    lines = audited(timed, "session.login")
    assert {line["result"] for line in lines} == {"done", "denied"}
    assert PASSWORD not in str(lines) and "wrong password" not in str(lines)


def test_slow_guessing_is_blocked_too(timed: Site, clock: FakeClock) -> None:
    timed.user("ada", PASSWORD)
    statuses = []
    for _ in range(8):
        statuses.append(timed.post("/api/session", WRONG).status)
        clock.advance(50)
    assert 429 in statuses


def test_stranger_cannot_shut_an_account(sites: Sites, clock: FakeClock) -> None:
    site = sites(clock=clock, listen=PROXIED)
    site.user("ada", PASSWORD)
    device = _device(sign_in(site, RIGHT, "198.51.100.1"))
    for number in range(30):
        assert sign_in(site, WRONG, f"203.0.113.{number}").status == 401
    assert sign_in(site, WRONG, "203.0.113.25").status == 429, "a second try of the same address"
    assert sign_in(site, RIGHT, "198.51.100.7").status == 200, "from an address of its own"
    for _ in range(6):
        sign_in(site, WRONG, "198.51.100.9")  # the stranger sits behind the owner's address
    assert sign_in(site, RIGHT, "198.51.100.9").status == 429
    assert sign_in(site, RIGHT, "198.51.100.9", device).status == 200, "the browser is known"
    other = {"user": "bob", "password": PASSWORD}
    assert sign_in(site, other, "198.51.100.9", device).status in (401, 429), "known for ada only"


def test_known_browser_has_no_endless_tries(sites: Sites, clock: FakeClock) -> None:
    site = sites(clock=clock, listen=PROXIED)
    site.user("ada", PASSWORD)
    device = _device(sign_in(site, RIGHT, "198.51.100.1"))
    assert [sign_in(site, WRONG, f"203.0.113.{n}", device).status for n in range(6)] == [401] * 5 + [429]


def test_under_attack_each_address_has_one_try(sites: Sites, clock: FakeClock) -> None:
    site = sites(clock=clock, listen=PROXIED)
    site.user("ada", PASSWORD)
    for number in range(4):
        for _ in range(5):
            assert sign_in(site, WRONG, f"203.0.113.{number}").status == 401
    assert [sign_in(site, WRONG, "203.0.113.99").status for _ in range(2)] == [401, 429]


def test_addresses_of_one_ipv6_network_count_as_one(sites: Sites, clock: FakeClock) -> None:
    site = sites(clock=clock, listen=PROXIED)
    site.user("ada", PASSWORD)
    assert [sign_in(site, WRONG, f"2001:db8::{n}").status for n in range(1, 7)] == [401] * 5 + [429]
    assert sign_in(site, WRONG, "2001:db8:0:1::1").status == 401


def test_port_that_a_proxy_writes_is_not_part_of_the_address(sites: Sites, clock: FakeClock) -> None:
    site = sites(clock=clock, listen=PROXIED)
    site.user("ada", PASSWORD)
    for address in ("203.0.113.5:{}", "[2001:db8::7]:{}"):
        tries = [sign_in(site, WRONG, address.format(40_000 + n)).status for n in range(6)]
        assert tries == [401] * 5 + [429], address


def test_tries_at_the_same_time_are_counted_one_by_one(each_site: Site, clock: FakeClock) -> None:
    limits = sign_in_limits.SignInLimits()

    async def guess(store: Store) -> bool:
        try:
            await limits.begin(store, clock, "ada", "203.0.113.1", None)
        except sign_in_limits.TooManyTries:
            return False
        return True

    async def burst() -> int:
        store = await each_site.rota.stores.get()
        await limits.begin(store, clock, "eve", "203.0.113.9", None)
        return sum(await asyncio.gather(*(guess(store) for _ in range(30))))

    assert each_site.do(burst) <= sign_in_limits.TRIES


def test_an_address_has_limited_tries_for_all_accounts(sites: Sites, clock: FakeClock) -> None:
    site = sites(clock=clock, listen=PROXIED)
    tries = [sign_in(site, {"user": f"u{n}", "password": "x"}, "203.0.113.1").status for n in range(21)]
    assert tries == [401] * 20 + [429]
    site.user("ada", PASSWORD)
    assert sign_in(site, RIGHT, "203.0.113.2").status == 200


def test_success_does_not_block_its_address_where_others_have_failed(sites: Sites, clock: FakeClock) -> None:
    site, office = sites(clock=clock, listen=PROXIED), "203.0.113.1"
    site.user("ada", PASSWORD)
    for n in range(20):
        assert sign_in(site, {"user": f"u{n}", "password": "x"}, office).status == 401
    clock.advance(61)
    assert [sign_in(site, RIGHT, office).status for _ in range(3)] == [200] * 3
    assert sign_in(site, {"user": "eve", "password": "x"}, office).status == 401
    clock.advance(61)  # a failure blocks for longer than before, all the same
    assert sign_in(site, RIGHT, office).status == 429


def test_servers_of_one_store_count_together(sites: Sites, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    one, two = sites(url=url), sites(url=url)
    one.user("ada", PASSWORD)
    statuses = [site.post("/api/session", WRONG).status for site in (one, two, one, two, one, two, one)]
    assert statuses == [401] * 5 + [429] * 2


def test_rows_of_strangers_are_pruned_and_bounded(timed: Site, clock: FakeClock, monkeypatch: Any) -> None:
    monkeypatch.setattr(sign_in_limits, "MOST_ROWS", 10)

    async def rows(store: Store) -> list[str]:
        return [one.key + one.body for one in await store.documents("sign_in")]

    async def hammer() -> tuple[int, int, int]:
        store, limits = await timed.rota.stores.get(), sign_in_limits.SignInLimits()
        for number in range(30):
            await limits.begin(store, timed.rota.clock, "ada", f"203.0.113.{number}", None)
        many = await rows(store)
        assert not any("203.0" in row or "ada" in row for row in many), "neither names nor addresses"
        await sign_in_limits.prune(store, timed.rota.clock.now())
        few = await rows(store)
        clock.advance(2 * 3600)
        await sign_in_limits.prune(store, timed.rota.clock.now())
        return len(many), len(few), len(await rows(store))

    assert timed.do(hammer) == (61, 10, 0)


# --- passwords at sign-in ------------------------------------------------------------------------


def test_password_that_must_change_begins_no_session_until_it_has_changed(site: Site) -> None:
    request = PutUserRequest(password=PASSWORD, role="admin", must_change=True)
    site.do(lambda: site.operations().access.put_user("ada", request))
    refused = site.post("/api/session", RIGHT)
    assert (refused.status, refused.code, refused.json["field"]) == (
        403,
        "must_change_password",
        "new_password",
    )
    assert "Set-Cookie" not in refused.headers
    for weak in ("short", "aaaaaaaaaaaaaa", PASSWORD):
        answer = site.post("/api/session", {**RIGHT, "new_password": weak})
        assert (answer.status, answer.json["field"]) == (422, "new_password")
    assert site.post("/api/session", {**RIGHT, "new_password": "my own horse battery"}).status == 200
    assert site.post("/api/session", RIGHT).status == 401
    assert site.post("/api/session", {**RIGHT, "password": "my own horse battery"}).status == 200
    (entry,) = audited(site, "user.password")
    assert (entry["actor"], entry["object"]) == ("user:ada", "user:ada")


def test_users_change_their_own_password_which_ends_their_other_sessions(site: Site) -> None:
    site.user("ada", PASSWORD, role="viewer")
    other, own = Browser(site), Browser(site)
    assert other.sign_in(**RIGHT).status == own.sign_in(**RIGHT).status == 200
    assert own.sign_in(**RIGHT, new_password="my own horse battery").status == 200
    assert own.ask("GET", "/api/admin/me").status == 200
    assert other.ask("GET", "/api/admin/me").status == 401


def _device(answer: Answer) -> str:
    assert answer.status == 200
    cookies = answer.headers.get_all("Set-Cookie") or []
    return next(one.partition(";")[0] for one in cookies if "_device" in one)
