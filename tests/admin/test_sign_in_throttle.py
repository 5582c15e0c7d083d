"""Throttling of failed sign-ins."""

from __future__ import annotations

from sites import PASSWORD, Site, Sites, audited

from rota.admin.server import Listen
from rota.admin.sign_in_throttle import SignInThrottle
from rota.testing import FakeClock


def test_five_failures_a_minute_block_sign_in_for_a_growing_time(timed: Site, clock: FakeClock) -> None:
    timed.user("ada", PASSWORD)
    wrong = {"user": "ada", "password": "wrong password"}
    assert [timed.post("/api/session", wrong).status for _ in range(5)] == [401] * 5
    waits = []
    for _ in range(6):
        answer = timed.post("/api/session", {"user": "ada", "password": PASSWORD})
        assert (answer.status, answer.code) == (429, "too_many_tries")
        waits.append(int(answer.headers["Retry-After"]))
        clock.advance(waits[-1])
        assert timed.post("/api/session", wrong).status == 401
    assert waits == sorted(waits) and waits[0] <= 61 and waits[1] > 100 and waits[-1] <= 15 * 60 + 1
    clock.advance(15 * 60 + 1)
    assert timed.post("/api/session", {"user": "ada", "password": PASSWORD}).status == 200
    lines = audited(timed, "session.login")
    assert {line["result"] for line in lines} == {"done", "denied"}
    assert PASSWORD not in str(lines) and "wrong password" not in str(lines)


def test_failures_are_counted_by_account_whatever_the_address(sites: Sites, clock: FakeClock) -> None:
    site = sites(clock=clock, listen=Listen(port=0, behind_proxy=True))
    site.user("ada", PASSWORD)
    for number in range(5):
        headers = {"X-Forwarded-For": f"203.0.113.{number}", "X-Forwarded-Proto": "https"}
        wrong = {"user": "ada", "password": "wrong password"}
        assert site.post("/api/session", wrong, headers=headers).status == 401
    fresh = {"X-Forwarded-For": "203.0.113.77", "X-Forwarded-Proto": "https"}
    assert site.post("/api/session", {"user": "ada", "password": PASSWORD}, headers=fresh).status == 429
    assert site.post("/api/session", {"user": "bob", "password": PASSWORD}, headers=fresh).status == 401


def test_success_after_four_failures_does_not_block_sign_in(clock: FakeClock) -> None:
    throttle = SignInThrottle(clock)
    for _ in range(4):
        throttle.failed("address:a")
    throttle.failed("address:a")
    throttle.undo_failure("address:a")
    assert throttle.wait("address:a") == 0
    throttle.failed("address:a")
    assert throttle.wait("address:a") > 0
    throttle.failed("address:a")
    throttle.undo_failure("address:a")
    assert throttle.wait("address:a") > 0  # others have failed too often meanwhile
