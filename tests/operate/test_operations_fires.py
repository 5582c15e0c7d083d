"""Fire times to come: bounded per schedule and in total, and what was left out is listed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rota import Rota
from rota.operate import Operations, upcoming_fires
from rota.operate.requests import FiresRequest, PreviewRequest
from rota.runtime import heavy


async def test_schedule_with_too_many_fires_is_truncated(app: Rota, operations: Operations) -> None:
    now = app.clock.now()
    await app.schedules.create(name="often", task="elsewhere", every=60)
    await app.schedules.create(name="rare", task="elsewhere", every=3600, tenant="acme")
    found = await operations.schedules.fires(FiresRequest(hours=24))
    often = [fire.at for fire in found.items if fire.schedule == "often"]
    assert len(often) == upcoming_fires.MOST_FIRES_EACH
    (cut,) = found.cut
    assert (cut.schedule, cut.tenant, cut.after) == ("often", "default", often[-1])
    assert not found.more
    assert [fire.at for fire in found.items] == sorted(fire.at for fire in found.items)
    assert all(fire.at <= now + timedelta(hours=24) for fire in found.items)


async def test_schedule_with_exactly_the_limit_is_not_truncated(app: Rota, operations: Operations) -> None:
    await app.schedules.create(name="just", task="elsewhere", every=60)
    found = await operations.schedules.fires(FiresRequest(hours=upcoming_fires.MOST_FIRES_EACH / 60))
    assert (len(found.items), found.cut) == (upcoming_fires.MOST_FIRES_EACH, ())


async def test_too_many_fires_in_total_set_more(
    app: Rota, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upcoming_fires, "MOST_FIRES", 30)
    await app.schedules.create(name="a", task="elsewhere", every=3600)
    assert not (await operations.schedules.fires(FiresRequest(hours=24))).more
    await app.schedules.create(name="b", task="elsewhere", every=3600)
    found = await operations.schedules.fires(FiresRequest(hours=24))
    assert (len(found.items), len(found.cut), found.more) == (24, 1, True)
    assert found.cut[0].after <= app.clock.now()


async def test_rare_schedule_is_kept_among_frequent_ones(
    app: Rota, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upcoming_fires, "MOST_FIRES", 500)
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


async def test_what_takes_too_many_steps_is_cut_from_the_frequent_ones(
    app: Rota, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upcoming_fires, "MOST_STEPS", 60)
    for number in range(5):
        await app.schedules.create(name=f"often-{number}", task="elsewhere", every=60)
    await app.schedules.create(name="rare", task="elsewhere", every=20 * 3600)
    found = await operations.schedules.fires(FiresRequest(hours=24))
    assert found.more
    assert sorted(cut.schedule for cut in found.cut) == [f"often-{number}" for number in range(5)]
    assert "rare" in {fire.schedule for fire in found.items}
    assert len(found.items) < 60 + upcoming_fires.MOST_FIRES_EACH
    for cut in found.cut:  # what is shown of a schedule is shown up to where it was cut
        shown = [fire.at for fire in found.items if fire.schedule == cut.schedule]
        assert cut.after == shown[-1]


async def test_a_preview_that_takes_too_long_says_that_it_is_truncated(
    app: Rota, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.calendars.put("closed", [])
    await app.schedules.create(name="free", task="elsewhere", every=60)
    await app.schedules.create(name="bound", task="elsewhere", every=60, calendar="closed")
    for name in ("free", "bound"):
        whole = await operations.schedules.preview(name, PreviewRequest(n=3))
        assert (len(whole.fires), whole.truncated) == (3, False)
    monkeypatch.setattr(heavy, "CPU_S", 0.0)
    for name in ("free", "bound"):
        cut = await operations.schedules.preview(name, PreviewRequest(n=3))
        assert (len(cut.fires), cut.truncated) == (0, True)
