"""What a worker records in the audit log: its own decisions, and the entries of tasks."""

from __future__ import annotations

from typing import Any

import pytest

from rota import Backoff, Cancel, Context, OptionError, PayloadError, Rota, Snooze, State
from rota.model import AuditEntry, AuditFilter, ClaimRequest, PageRequest
from rota.store.calls import claim
from rota.testing import FakeClock, drain
from rota.worker import maintenance
from rota.worker.audit_seals import seal

app = Rota("sqlite://:memory:")  # process tasks live at the top level of a module


@app.task(executor="process", max_attempts=1)
def audit_in_a_process(ctx: Context, to: str, api_key: str) -> None:
    ctx.audit("email.sent", to=to)
    ctx.audit("email.billed", cents=3, note=f"with {api_key}")
    raise ValueError(f"the key {api_key} is bad")


async def entries_of(app: Rota, action: str | None = None) -> list[AuditEntry]:
    store = await app.stores.get()
    page = await store.audit(AuditFilter(action=action), PageRequest(limit=100, newest_first=False))
    return list(page.items)


async def claimed_by_a_dead_worker(app: Rota) -> None:
    store = await app.stores.get()
    want = ClaimRequest(worker="dead", limit=10, lease_s=30, tasks=app.registry.names)
    assert await claim(store, want, app.clock.now())


async def rescue(app: Rota) -> None:
    await maintenance.rescue(await app.stores.get(), app.clock, "rescuer", 30, lambda job, state: None)


# --- decisions of the worker -----------------------------------------------------------------------


async def test_exhausted_retries_are_audited_once(app: Rota) -> None:
    @app.task(max_attempts=2, backoff=Backoff.none())
    async def broken() -> None:
        raise ValueError("no luck\nand more")

    job = await broken.options(tenant="acme").enqueue()
    await drain(app)
    (line,) = await entries_of(app)
    assert (line.action, line.object, line.tenant) == ("job.exhausted_retries", f"job:{job.id}", "acme")
    assert line.actor.startswith("worker:") and line.actor != "worker:unknown"
    assert (line.message, line.via) == ("ValueError: no luck", "system")


async def test_a_retry_or_success_is_not_audited(app: Rota) -> None:
    @app.task
    async def work(n: int) -> None:
        if n < 0:
            raise ValueError("no")

    states = [await work.enqueue(1), await work.enqueue(-1)]
    await drain(app)
    assert [(await job.refresh()).state for job in states] == ["succeeded", "queued"]
    assert await entries_of(app) == []


async def test_rescue_and_quarantine_are_audited(app: Rota, clock: FakeClock) -> None:
    @app.task(max_attempts=2)
    async def work() -> None: ...

    job = await work.enqueue()
    for _ in range(3):
        await claimed_by_a_dead_worker(app)
        clock.advance(31)
        await rescue(app)
    entries = await entries_of(app)
    assert [(line.action, line.actor) for line in entries] == [
        ("job.rescued", "worker:rescuer"),
        ("job.rescued", "worker:rescuer"),
        ("job.quarantined", "worker:rescuer"),
    ]
    assert entries[2].message == "Quarantined: worker dead stopped responding during attempt 1"
    assert (await job.refresh()).state is State.FAILED


# --- entries of tasks ------------------------------------------------------------------------------


async def test_audit_entries_of_a_coroutine_are_stored_with_its_outcome(app: Rota) -> None:
    @app.task
    async def send(ctx: Context, to: str) -> None:
        ctx.audit("email.sent", to=to, parts=[1, {"n": 2}])
        assert await entries_of(app) == []

    job = await send.options(tenant="acme").enqueue("ada@example.org")
    await drain(app)
    (line,) = await entries_of(app)
    assert (line.action, line.tenant, line.object, line.actor) == (
        "email.sent", "acme", f"job:{job.id}", "task:send",
    )  # fmt: skip
    assert line.after == {"to": "ada@example.org", "parts": [1, {"n": 2}]}


@pytest.mark.parametrize("end", [ValueError("no"), Snooze(30), Cancel("enough")])
async def test_audit_entries_of_a_function_are_stored_for_every_outcome(app: Rota, end: Exception) -> None:
    @app.task
    def send(ctx: Context) -> None:
        ctx.audit("email.sent")
        raise end

    await send.enqueue()
    await drain(app)
    (line,) = await entries_of(app, "email.sent")
    assert line.after is None


async def test_audit_entries_of_a_process_task_are_redacted() -> None:
    try:
        job = await audit_in_a_process.enqueue(to="ada", api_key="canary-7f3a")
        await drain(app)
        sent, billed, exhausted = await entries_of(app)
        assert (sent.after, billed.after) == ({"to": "ada"}, {"cents": 3, "note": "with •••"})
        assert exhausted.message == "ValueError: the key ••• is bad"
        assert "canary" not in ((await job.refresh()).error_json or "canary")
    finally:
        await app.close()


async def test_audit_entries_are_dropped_when_the_lease_is_lost(app: Rota, clock: FakeClock) -> None:
    @app.task
    async def send(ctx: Context) -> None:
        ctx.audit("email.sent")
        clock.advance(31)
        await rescue(app)

    await send.options(max_attempts=1).enqueue()
    await drain(app)
    assert [line.action for line in await entries_of(app)] == ["job.quarantined"]


@pytest.mark.parametrize(
    "action",
    ["sent", "Email.sent", "email sent.x", ".sent", "email.", "é.x", "a." + "b" * 99, "email.sent\n"]
    + [f"{word}.x" for word in ("job", "queue", "schedule", "token", "user", "gate", "worker", "tenant")],
)
async def test_a_misspelt_or_reserved_audit_action_is_rejected(app: Rota, action: str) -> None:
    seen: list[str] = []

    @app.task
    async def send(ctx: Context) -> None:
        with pytest.raises(OptionError, match="audit action=") as caught:
            ctx.audit(action)
        seen.append(str(caught.value))

    await send.enqueue()
    await drain(app)
    assert len(seen) == 1
    assert await entries_of(app) == []


async def test_audit_entries_and_their_details_are_bounded(app: Rota) -> None:
    seen: list[Any] = []

    @app.task
    async def send(ctx: Context) -> None:
        with pytest.raises(PayloadError, match=r"the details of audit action 'email\.sent'"):
            ctx.audit("email.sent", text="x" * 5000)
        for n in range(20):
            ctx.audit("email.sent", n=n)
        with pytest.raises(OptionError, match="at most 20 audit entries"):
            ctx.audit("email.sent")
        seen.append(True)

    await send.enqueue()
    await drain(app)
    assert seen == [True]
    assert [line.after["n"] for line in await entries_of(app)] == list(range(20))


# --- keeping -------------------------------------------------------------------------------------


async def test_old_audit_entries_and_stale_documents_are_pruned(app: Rota, clock: FakeClock) -> None:
    store = await app.stores.get()
    await store.append_audit([AuditEntry(action="email.sent", at=clock.now())])
    assert await seal(store, clock) is not None  # only sealed entries are pruned
    for kind in ("idempotency", "session", "token", "gate"):
        await store.put_document(kind, "a", "{}", 0, clock.now())

    async def left() -> list[str]:
        await maintenance.prune(store, clock, app.settings)
        kinds = ("idempotency", "session", "token", "gate")
        return [kind for kind in kinds if await store.documents(kind)]

    clock.advance(11 * 3600)
    assert await left() == ["idempotency", "session", "token", "gate"]
    clock.advance(2 * 3600)
    assert await left() == ["idempotency", "token", "gate"]
    clock.advance(12 * 3600)
    assert await left() == ["token", "gate"]
    assert len(await entries_of(app)) == 1
    clock.advance(365 * 86_400)
    assert await left() == ["token", "gate"]
    assert await entries_of(app) == []
