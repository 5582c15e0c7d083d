"""Pauses and schedules: a paused schedule keeps its next fire, and metrics count the fires."""

from __future__ import annotations

from datetime import timedelta

import pytest
from ticks import Ticks, fires_of, stored

from rota import Rota


@pytest.fixture
async def ticks(app: Rota) -> Ticks:
    @app.task
    def tick() -> None: ...

    return await Ticks.of(app)


@pytest.mark.parametrize(
    ("missed", "caught_up"),
    [
        ("skip", []),
        ("latest", [("01-01 12:04", "catchup")]),
        ("all", [(f"01-01 12:0{minute}", "catchup") for minute in (2, 3, 4)]),
    ],
)
async def test_a_paused_schedule_keeps_its_next_fire_and_its_policy_decides_at_resume(
    app: Rota, ticks: Ticks, missed: str, caught_up: list[tuple[str, str]]
) -> None:
    await app.schedules.create(name="minutely", task="tick", cron="* * * * *", missed=missed)
    start = app.clock.now()
    await ticks.through(start + timedelta(minutes=1))
    assert await fires_of(app, "minutely") == [("01-01 12:01", "scheduler")]
    await app.pause(schedule="minutely", reason="upstream is down")
    await ticks.through(start + timedelta(minutes=4, seconds=30))
    held = await stored(app, "minutely")
    assert held.next_run_at == start + timedelta(minutes=2)
    assert held.check_at is not None and (held.check_at - app.clock.now()).total_seconds() <= 30
    assert await fires_of(app, "minutely") == [("01-01 12:01", "scheduler")]
    await app.resume(schedule="minutely")
    await ticks.after()
    assert await fires_of(app, "minutely") == [("01-01 12:01", "scheduler"), *caught_up]
    await ticks.through(start + timedelta(minutes=5))
    assert (await fires_of(app, "minutely"))[-1] == ("01-01 12:05", "scheduler")


async def test_a_paused_schedule_fires_again_the_moment_its_gate_ends(app: Rota, ticks: Ticks) -> None:
    start = app.clock.now()
    await app.schedules.create(name="minutely", task="tick", cron="* * * * *", missed="latest")
    await app.pause(schedule="minutely", until=start + timedelta(seconds=70))
    await ticks.through(start + timedelta(seconds=69))
    assert await fires_of(app, "minutely") == []
    assert (await stored(app, "minutely")).check_at == start + timedelta(seconds=70)
    await ticks.after(1)
    assert await fires_of(app, "minutely") == [("01-01 12:01", "catchup")]


async def test_a_schedule_continues_while_other_things_are_paused(app: Rota, ticks: Ticks) -> None:
    await app.schedules.create(name="minutely", task="tick", cron="* * * * *")
    await app.schedules.create(name="other", task="tick", cron="* * * * *")
    await app.pause(schedule="other")
    await app.pause(task="tick")
    await app.pause()
    await ticks.after(60)
    assert await fires_of(app, "minutely") == [("01-01 12:01", "scheduler")]
    assert await fires_of(app, "other") == []


async def test_fires_are_counted_with_how_late_they_were(app: Rota, ticks: Ticks) -> None:
    await app.schedules.create(name="minutely", task="tick", cron="* * * * *", missed="all")
    await ticks.after(62)
    await ticks.after(181)
    measures = ticks.scheduler.metrics.snapshot()
    assert measures["fires"] == {"scheduler": 2, "catchup": 2}
    assert (measures["late"]["count"], measures["late"]["sum"]) == (2, 5.0)
