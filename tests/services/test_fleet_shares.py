"""The fleet: who looks at once, who later, and how often each does what any of them could do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota import Rota
from rota.runtime.fleet import FEW, LIVE_S, Fleet, WorkerSeen, hold_back, shared
from rota.testing import FakeClock

CHANCES = [n / 1000 for n in range(1000)]
POLL_S = 1.0
ME = WorkerSeen(id="me", tasks=("work",))


def looks_at_once(jobs: int, peers: int) -> float:
    """How many of these workers look at once, on average."""
    return peers * sum(hold_back(jobs, peers, POLL_S, chance) == 0 for chance in CHANCES) / len(CHANCES)


@pytest.mark.parametrize("peers", range(1, FEW + 1))
def test_a_few_workers_always_look_at_once(peers: int) -> None:
    assert looks_at_once(1, peers) == peers


@pytest.mark.parametrize("peers", [5, 60, 500])
def test_a_single_job_makes_a_few_of_many_look(peers: int) -> None:
    assert looks_at_once(1, peers) == pytest.approx(FEW, abs=peers / 500)


def test_more_jobs_make_more_workers_look() -> None:
    assert looks_at_once(20, 100) == pytest.approx(22, abs=0.2)
    assert looks_at_once(1000, 100) == 100


@pytest.mark.parametrize("peers", [4, 8, 60])
def test_the_others_look_one_by_one(peers: int) -> None:
    later = [hold for chance in CHANCES if (hold := hold_back(1, peers, POLL_S, chance)) > 0]
    assert max(later) <= POLL_S * max(1, peers / 8)
    in_one_poll = peers * sum(hold <= POLL_S for hold in later) / len(CHANCES)
    assert in_one_poll <= 8


def test_one_alone_does_everything_as_often_as_asked() -> None:
    assert {shared(POLL_S, 1, 5.0, chance) for chance in CHANCES} == {POLL_S}


def test_many_share_what_any_could_do_up_to_a_limit() -> None:
    assert shared(POLL_S, 3, 5.0, 0.0) == 3.0
    assert shared(POLL_S, 500, 5.0, 0.0) == 5.0
    assert max(shared(POLL_S, 500, 5.0, chance) for chance in CHANCES) <= 6.0
    assert shared(30.0, 500, 10.0, 0.5) == 30.0


async def fleet_of(app: Rota, clock: FakeClock, *others: dict[str, Any] | str) -> Fleet:
    store = await app.stores.get()
    for n, other in enumerate(others):
        body = other if isinstance(other, str) else msgspec.json.encode({"id": f"w{n}"} | other).decode()
        await store.put_document("worker", f"w{n}", body, None, clock.now())
    fleet = Fleet(store, clock, lambda: ME)
    await fleet.read()
    return fleet


async def test_only_those_count_that_could_run_the_job_now(app: Rota, clock: FakeClock) -> None:
    like_me = {"tasks": ["work"], "concurrency": 4, "running": 3}
    fleet = await fleet_of(
        app,
        clock,
        like_me,
        like_me | {"running": 4},
        like_me | {"state": "paused"},
        like_me | {"tasks": ["other"]},
        like_me | {"queues": ["mail"]},
        like_me | {"scheduler": True, "running": 4},
        {"id": "me", "tasks": ["work"]},
        "[]",
    )
    assert (fleet.peers, fleet.workers, fleet.schedulers) == (2, 7, 2)


async def test_workers_without_a_heartbeat_do_not_count(app: Rota, clock: FakeClock) -> None:
    await fleet_of(app, clock, {"tasks": ["work"]})
    clock.advance(LIVE_S + 1)
    fleet = await fleet_of(app, clock)
    assert (fleet.peers, fleet.workers) == (1, 1)


async def test_it_is_read_again_soon_while_it_changes(app: Rota, clock: FakeClock) -> None:
    store = await app.stores.get()
    fleet = Fleet(store, clock, lambda: ME)
    await store.put_document("worker", "w", '{"id": "w", "tasks": ["work"]}', None, clock.now())
    soon, later = await fleet.read(), await fleet.read()
    assert soon < later


async def test_a_worker_that_hears_nothing_polls_as_often_as_alone(app: Rota, clock: FakeClock) -> None:
    fleet = await fleet_of(app, clock, *[{"tasks": ["work"]}] * 20)
    assert fleet.peers == 21
    assert not (await app.stores.get()).capabilities.push
    assert fleet.poll_s(POLL_S) == POLL_S
    assert fleet.tick_s(POLL_S) == POLL_S  # none of the others fires schedules
    assert fleet.share_s(60.0, 600.0) == 600.0
    assert timedelta(seconds=fleet.hold_back_s(1, POLL_S)) == timedelta()  # the clock's chance is 0
