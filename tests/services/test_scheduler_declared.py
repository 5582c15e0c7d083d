"""Schedules that code declares: what a deploy inserts, updates, retires and leaves alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ticks import Ticks, fires_of, jobs_of

from rota import Rota
from rota.errors import InvalidSchedule, RotaError
from rota.model import Schedule
from rota.testing import FakeClock

Declare = Callable[[Rota], Any]
Deploy = Callable[..., Any]


@pytest.fixture
async def deploy(tmp_path: Path, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> Any:
    """``await deploy(declare, name=…)``: a new program starts, declares, and lets a tick pass."""
    apps: list[Rota] = []
    caplog.set_level(logging.INFO, "rota.scheduler")

    async def start(*declare: Declare, name: str | None = "shop", seconds: float = 0) -> Rota:
        app = Rota(f"sqlite:///{tmp_path / 'rota.db'}", name=name, clock=clock)
        apps.append(app)
        for one in declare:
            one(app)
        caplog.clear()
        await (await Ticks.of(app)).after(seconds)
        return app

    yield start
    for app in apps:
        await app.close()


def nightly(cron: str = "0 3 * * *", **given: Any) -> Declare:
    def declare(app: Rota) -> None:
        @app.cron(cron, name="nightly", **given)
        async def run() -> None: ...

    return declare


def often(every: Any = "15m", **given: Any) -> Declare:
    def declare(app: Rota) -> None:
        @app.every(every, name="often", **given)
        def run() -> None: ...

    return declare


async def all_of(app: Rota) -> dict[str, Schedule]:
    return {schedule.name: schedule for schedule in (await app.schedules.list()).items}


async def test_a_declared_schedule_is_inserted_when_the_program_starts_to_work(deploy: Deploy) -> None:
    app = await deploy(nightly(timezone="America/New_York", queue="slow", max_attempts=7), often())
    found = await all_of(app)
    assert found.keys() == {"nightly", "often"}
    one = found["nightly"]
    assert (one.source, one.owner, one.task, one.cron) == ("code", "shop", "nightly", "0 3 * * *")
    assert (one.timezone, one.queue, one.max_attempts) == ("America/New_York", "slow", 7)
    assert one.next_run_at == datetime(2030, 1, 2, 8, tzinfo=UTC)
    assert found["often"].every == 900


async def test_a_declared_schedule_fires(deploy: Deploy) -> None:
    await deploy(often())
    app = await deploy(often(), seconds=900)
    (job,) = await jobs_of(app)
    assert (job.task, job.schedule, job.origin) == ("often", "often", "scheduler")


async def test_a_restart_changes_nothing(deploy: Deploy) -> None:
    before = await all_of(await deploy(nightly(), often()))
    assert await all_of(await deploy(nightly(), often(), seconds=600)) == before


async def test_new_code_updates_its_own_schedule(deploy: Deploy) -> None:
    before = (await all_of(await deploy(nightly())))["nightly"]
    after = (await all_of(await deploy(nightly("0 4 * * *", description="later"))))["nightly"]
    assert (after.id, after.cron, after.description) == (before.id, "0 4 * * *", "later")
    assert after.next_run_at == datetime(2030, 1, 2, 4, tzinfo=UTC)


async def test_an_operators_pause_survives_every_deploy_and_is_logged(
    deploy: Deploy, caplog: pytest.LogCaptureFixture
) -> None:
    app = await deploy(nightly())
    await app.schedules.disable("nightly", reason="holiday")
    after = (await all_of(await deploy(nightly("0 4 * * *"))))["nightly"]
    assert (after.enabled, after.reason, after.cron) == (False, "holiday", "0 4 * * *")
    assert "schedule default/nightly: keeping an operator's change over the code: enabled" in caplog.text


async def test_an_operators_edit_survives_every_deploy_and_is_logged(
    deploy: Deploy, caplog: pytest.LogCaptureFixture
) -> None:
    app = await deploy(nightly())
    await app.schedules.update("nightly", cron="0 5 * * *")
    for declared in (nightly(), nightly("0 4 * * *"), nightly("0 4 * * *")):
        after = (await all_of(await deploy(declared)))["nightly"]
        assert after.cron == "0 5 * * *"
        assert "keeping an operator's change over the code: cron" in caplog.text


async def test_an_edit_and_a_rule_of_another_kind_do_not_make_a_broken_schedule(deploy: Deploy) -> None:
    app = await deploy(nightly())
    await app.schedules.update("nightly", cron="0 5 * * *")

    def declare(app: Rota) -> None:
        @app.every("1h", name="nightly")
        async def run() -> None: ...

    after = (await all_of(await deploy(declare, seconds=86400)))["nightly"]
    assert (after.enabled, after.cron, after.every) == (True, "0 5 * * *", None)


async def test_what_is_no_longer_declared_is_retired_and_revived_when_it_is_again(
    deploy: Deploy, caplog: pytest.LogCaptureFixture
) -> None:
    await deploy(nightly(), often())
    app = await deploy(nightly(), seconds=3600)
    retired = (await all_of(app))["often"]
    assert (retired.enabled, retired.reason) == (False, "retired: shop no longer declares it")
    assert "default/often is retired" in caplog.text
    assert await fires_of(app, "often") == []
    again = (await all_of(await deploy(nightly(), often())))["often"]
    assert (again.id, again.enabled, again.reason) == (retired.id, True, None)
    assert again.next_run_at == datetime(2030, 1, 1, 13, 15, tzinfo=UTC)


async def test_the_last_schedule_of_a_program_is_retired_too(deploy: Deploy) -> None:
    await deploy(nightly())
    assert not (await all_of(await deploy()))["nightly"].enabled


async def test_two_programs_do_not_retire_each_others_schedules(deploy: Deploy) -> None:
    await deploy(nightly(), name="shop")
    app = await deploy(often(), name="billing")
    assert all(schedule.enabled for schedule in (await all_of(app)).values())
    await deploy(nightly(), name="shop")
    assert {schedule.owner: schedule.enabled for schedule in (await all_of(app)).values()} == {
        "shop": True, "billing": True}  # fmt: skip


async def test_a_program_without_a_name_owns_by_its_module(deploy: Deploy) -> None:
    found = await all_of(await deploy(nightly(), name=None))
    assert found["nightly"].owner == __name__.partition(".")[0]


async def test_a_schedule_made_by_hand_is_neither_changed_nor_retired(
    deploy: Deploy, caplog: pytest.LogCaptureFixture
) -> None:
    app = await deploy()
    before = await app.schedules.create(name="nightly", task="other", cron="0 1 * * *")
    assert (await all_of(await deploy(nightly())))["nightly"] == before
    assert "a schedule of that name was created by hand" in caplog.text
    assert (await all_of(await deploy(often())))["nightly"] == before


async def test_a_declaration_that_cannot_be_stored_harms_no_other(
    deploy: Deploy, caplog: pytest.LogCaptureFixture
) -> None:
    """Its calendar does not exist."""
    app = await deploy(nightly(calendar="holidays"), often())
    assert "schedule default/nightly cannot be brought into the store" in caplog.text
    assert "there is no calendar named 'holidays'" in caplog.text
    assert (await all_of(app)).keys() == {"often"}


async def test_a_declaration_that_an_edit_has_made_impossible_harms_no_other(
    deploy: Deploy, caplog: pytest.LogCaptureFixture
) -> None:
    app = await deploy(nightly())
    await app.schedules.update("nightly", until="2030-02-01T00:00:00Z")
    app = await deploy(nightly(start_at="2030-03-01T00:00:00Z"), often())
    assert "until=2030-02-01T00:00:00+00:00: is before start_at" in caplog.text
    assert (await all_of(app))["often"].enabled


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("0 0 31 2 *", {}, "never"),
        ("0 3 * * *", {"timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ("0 3 * * *", {"overlap": "perhaps"}, "overlap='perhaps'"),
        ("0 3 * * *", {"payload": {"a": 1}}, "unknown argument 'a'"),
    ],
)
def test_a_bad_declaration_is_refused_where_it_is_written(text: str, given: Any, said: str) -> None:
    app = Rota("sqlite://:memory:")
    with pytest.raises(RotaError, match=said):

        @app.cron(text, **given)
        async def nightly() -> None: ...

    assert "nightly" not in app.registry.tasks
    with pytest.raises(InvalidSchedule, match="every='soon'"):
        app.every("soon")(_nothing)


async def test_two_processes_of_one_program_may_start_at_once(deploy: Deploy) -> None:

    apps = await asyncio.gather(*[deploy(nightly(), often()) for _ in range(4)])
    assert (await all_of(apps[0])).keys() == {"nightly", "often"}


def _nothing() -> None: ...
