"""Requests that take a processor long: others are answered meanwhile, and clients that leave end them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sites import API, DEADLINE_S, Answer, Site

from rota.core.schedules import describe
from rota.runtime.heavy import Abandoned


class Previews:
    """Stands in for the computation of a preview: it takes until told."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.calls = 0
        self.go_on = threading.Event()
        self.stopped = threading.Event()

    def compute(self, rule: Any, after: Any, n: int, go_on: Any) -> list[Any]:
        self.calls += 1
        self.begun.release()
        try:
            while not self.go_on.wait(0.001):
                for _ in range(64):
                    go_on()
        except Abandoned:
            self.stopped.set()
            raise
        return []


@pytest.fixture
def previews(monkeypatch: pytest.MonkeyPatch) -> Iterator[Previews]:
    made = Previews()
    monkeypatch.setattr(describe, "preview", made.compute)
    yield made
    made.go_on.set()


def with_schedule(site: Site) -> Site:
    site.do(lambda: site.rota.schedules.create(name="often", task="work", every=60))
    return site


def test_others_are_answered_while_twenty_heavy_requests_run(each_site: Site, previews: Previews) -> None:
    site = with_schedule(each_site)
    heavy = [site.token("viewer") for _ in range(4)]
    other = site.token("viewer", "acme")

    def ask(n: int) -> Answer:
        return site.ask("GET", f"{API}/schedules/often/preview?n={n}", token=heavy[n % 4])

    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(ask, n) for n in range(1, 21)]
        assert previews.begun.acquire(timeout=DEADLINE_S)
        for _ in range(10):
            assert site.ask("GET", "/healthz").status == 200
            assert site.ask("GET", f"{API}/schedules", token=other).status == 200
        assert not any(one.done() for one in asked)
        previews.go_on.set()
        assert [one.result(DEADLINE_S).status for one in asked] == [200] * 20
    assert previews.calls == 20


def test_the_same_heavy_question_is_computed_once(site: Site, previews: Previews) -> None:
    with_schedule(site)
    token = site.token("viewer")

    def ask() -> Answer:
        return site.ask("GET", f"{API}/schedules/often/preview?n=7", token=token)

    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(ask) for _ in range(5)]
        assert previews.begun.acquire(timeout=DEADLINE_S)
        waiting = site.server.admin.dispatch.heavy
        until_shared(waiting, 5)
        previews.go_on.set()
        assert {one.result(DEADLINE_S).body for one in asked} == {asked[0].result().body}
    assert previews.calls == 1


def until_shared(answers: Any, count: int) -> None:
    """Until this many callers wait for one answer."""
    pause = threading.Event()
    for _ in range(int(DEADLINE_S / 0.01)):
        if any(shared.waiting == count for shared in list(answers._making.values())):
            return
        pause.wait(0.01)
    raise AssertionError("the callers do not wait for the same answer")


def test_a_client_that_leaves_ends_its_computation(site: Site, previews: Previews) -> None:
    with_schedule(site)
    connection = site.connect()
    connection.request(
        "GET", f"{API}/schedules/often/preview", headers={"Authorization": f"Bearer {site.token('viewer')}"}
    )
    assert previews.begun.acquire(timeout=DEADLINE_S)
    connection.close()
    assert previews.stopped.wait(DEADLINE_S)


def test_tenants_do_not_share_answers(site: Site) -> None:
    for tenant in ("acme", "initech"):
        site.do(
            lambda tenant=tenant: site.rota.schedules.create(  # type: ignore[misc]
                name=f"of-{tenant}", task="work", every=3600, tenant=tenant
            )
        )
    tokens = {tenant: site.token("viewer", tenant) for tenant in ("acme", "initech")}
    with ThreadPoolExecutor(8) as pool:
        asked = [
            (tenant, pool.submit(site.ask, "GET", f"{API}/schedules/fires", token=token))
            for tenant, token in list(tokens.items()) * 4
        ]
        for tenant, one in asked:
            assert {fire["tenant"] for fire in one.result(DEADLINE_S).json["items"]} == {tenant}
