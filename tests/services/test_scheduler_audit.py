"""What the scheduler records in the audit log."""

from __future__ import annotations

import msgspec
from ticks import Ticks

from rota import Rota
from rota.model import AuditEntry, AuditFilter, PageRequest, ScheduleFilter


async def entries(app: Rota, action: str) -> list[AuditEntry]:
    store = await app.stores.get()
    page = await store.audit(AuditFilter(action=action), PageRequest(limit=100, newest_first=False))
    return list(page.items)


async def test_a_schedule_disabled_by_an_error_is_audited(app: Rota) -> None:
    @app.task
    def tick() -> None: ...

    ticks = await Ticks.of(app)
    await app.schedules.create(name="minutely", task="tick", cron="* * * * *", calendar=None)
    store = await app.stores.get()
    (schedule,) = (await store.schedules(ScheduleFilter(), PageRequest(limit=1))).items
    spoiled = msgspec.structs.replace(schedule, cron="61 * * * *")
    assert (await store.put_schedules([spoiled], app.clock.now()))[0] is not None
    await ticks.after(60)
    (line,) = await entries(app, "schedule.disabled_by_error")
    assert (line.object, line.tenant, line.actor) == ("schedule:default/minutely", "default", "scheduler")
    assert line.message is not None and "61" in line.message


async def test_permanently_missed_fires_are_audited(app: Rota) -> None:
    @app.task
    def tick() -> None: ...

    ticks = await Ticks.of(app)
    await app.schedules.create(name="lost", task="tick", every=60, missed="skip")
    await app.schedules.create(name="whole", task="tick", every=60, missed="all")
    await ticks.after(5 * 60 + 30)
    (line,) = await entries(app, "schedule.missed")
    assert (line.object, line.tenant, line.actor) == ("schedule:default/lost", "default", "scheduler")
    assert line.message == "5 missed fires are not caught up (missed=skip)"
