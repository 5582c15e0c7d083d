"""What will fire: bounded for each schedule and for all, and what was left out is said."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rota import Rota
from rota.operate import Operations, schedules
from rota.operate.requests import FiresRequest


async def test_a_schedule_that_fires_too_often_is_said_to_be_cut(app: Rota, operations: Operations) -> None:
    now = app.clock.now()
    await app.schedules.create(name="often", task="elsewhere", every=60)
    await app.schedules.create(name="seldom", task="elsewhere", every=3600, tenant="acme")
    found = await operations.schedules.fires(FiresRequest(hours=24))
    often = [fire.at for fire in found.items if fire.schedule == "often"]
    assert len(often) == schedules.MOST_FIRES_EACH
    (cut,) = found.cut
    assert (cut.schedule, cut.tenant, cut.after) == ("often", "default", often[-1])
    assert not found.more
    assert [fire.at for fire in found.items] == sorted(fire.at for fire in found.items)
    assert all(fire.at <= now + timedelta(hours=24) for fire in found.items)


async def test_a_schedule_with_as_many_fires_as_are_told_is_whole(app: Rota, operations: Operations) -> None:
    await app.schedules.create(name="just", task="elsewhere", every=60)
    found = await operations.schedules.fires(FiresRequest(hours=schedules.MOST_FIRES_EACH / 60))
    assert (len(found.items), found.cut) == (schedules.MOST_FIRES_EACH, ())


async def test_too_many_of_all_schedules_are_said_to_be_more(
    app: Rota, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "MOST_PLANNED", 30)
    await app.schedules.create(name="a", task="elsewhere", every=3600)
    assert not (await operations.schedules.fires(FiresRequest(hours=24))).more
    await app.schedules.create(name="b", task="elsewhere", every=3600)
    found = await operations.schedules.fires(FiresRequest(hours=24))
    assert (len(found.items), len(found.cut), found.more) == (24, 1, True)
    assert found.cut[0].after <= app.clock.now()


async def test_what_fires_seldom_is_told_beside_a_crowd_that_fires_often(
    app: Rota, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "MOST_PLANNED", 500)
    for number in range(5):
        await app.schedules.create(name=f"often-{number}", task="elsewhere", every=60)
    await app.schedules.create(name="nightly", task="elsewhere", every=20 * 3600)
    found = await operations.schedules.fires(FiresRequest(hours=24))
    assert [fire.schedule for fire in found.items].count("nightly") == 1
    assert (len(found.cut), found.more) == (5, True)


async def test_a_day_off_has_no_fires(app: Rota, operations: Operations) -> None:
    today = app.clock.now().date()
    await app.calendars.put("closed", [today, today + timedelta(days=1)])
    await app.schedules.create(name="hourly", task="elsewhere", cron="0 * * * *", calendar="closed")
    assert (await operations.schedules.fires(FiresRequest(hours=12))).items == ()
