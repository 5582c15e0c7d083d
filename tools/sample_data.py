"""Sample data for screenshots: a store after twelve busy hours in a shop, with some failures.

Written through the store's own methods, at the times of the events. Every run creates the same data.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import sin
from typing import Any

import msgspec

from rota import Rota
from rota.core.ids import uuid7
from rota.model import (
    Actor,
    Attempt,
    ClaimRequest,
    Heartbeat,
    Job,
    Lease,
    LogLine,
    NewJob,
    ProgressUpdate,
    Role,
    Settlement,
    State,
)
from rota.operate.requests import CreateTokenRequest, DisableRequest, GateRequest, PutUserRequest
from rota.store.calls import claim, settle
from rota.store.protocol import Store

STEP = timedelta(minutes=5)
STEPS = 144
OUTAGE = (97, 103)  # steps in which the warehouse did not respond
LEASE_S = 3600.0
RETRY_AFTER = timedelta(seconds=25)  # from one attempt to the next
TENANTS = ("acme", "acme", "globex", "initech", "default")
TASKS = (  # name, queue, duration in seconds, one in this many jobs fails
    ("send_receipt", "mail", 0.4, 60),
    ("send_receipt", "mail", 0.5, 45),
    ("charge_card", "billing", 1.1, 40),
    ("resize_image", "media", 2.3, 90),
    ("sync_inventory", "sync", 6.5, 25),
    ("render_invoice", "pdf", 3.1, 70),
)
COSTS = {"render_invoice": 18.0, "resize_image": 9.0}  # cents a job
ERRORS = {
    "send_receipt": ("SMTPServerDisconnected", "the mail server hung up after DATA"),
    "charge_card": ("CardDeclined", "the bank says: insufficient funds"),
    "resize_image": ("UnidentifiedImageError", "cannot read catalogue/4411.heic"),
    "sync_inventory": ("ConnectTimeout", "warehouse.example did not answer within 10 s"),
    "render_invoice": ("KeyError", "'vat_rate'"),
}
SCHEDULES: tuple[dict[str, Any], ...] = (
    {"name": "sync_stock", "task": "sync_inventory", "every": 900, "tenant": "acme"},
    {"name": "nightly_report", "task": "render_invoice", "cron": "30 2 * * *", "timezone": "Europe/Berlin"},
    {"name": "morning_digest", "task": "send_receipt", "cron": "0 8 * * 1-5", "timezone": "America/New_York"},
    {"name": "month_end", "task": "charge_card", "cron": "0 6 L * *", "tenant": "globex"},
    {"name": "thumbnails", "task": "resize_image", "every": 3600, "overlap": "skip"},
)
PEOPLE: tuple[tuple[str, Role], ...] = (("ada", "admin"), ("grace", "operator"), ("edsger", "viewer"))


async def fill(app: Rota) -> None:
    store, now = await app.stores.get(), app.clock.now()
    for given in SCHEDULES:
        await app.schedules.create(description="Part of the shop's routine.", **given)
    for step in range(STEPS):
        await _work(store, step, now - STEP * (STEPS - step))
    await _today(store, now)
    await _rules(app)
    await _people(app)


def _arrivals(step: int) -> int:
    """The number of new jobs in a step: it rises and falls over the day and varies from step to step."""
    return round(9 + 5 * sin(step / 23 - 2) + 3 * sin(step / 6.1)) + step * 7919 % 5


async def _work(store: Store, step: int, at: datetime) -> None:
    jobs = [_job(step * 100 + i, at) for i in range(_arrivals(step))]
    if step % 3 == 0:
        jobs.append(_job(step * 100 + 99, at, schedule="sync_stock", tenant="acme", task=TASKS[4]))
    await store.insert(jobs, at)
    for nth, worker in enumerate(("web-1", "web-2", "web-1")):  # failing jobs have three attempts
        started = at + nth * RETRY_AFTER
        claimed = await claim(store, ClaimRequest(worker=worker, limit=100, lease_s=LEASE_S), started)
        end = started + timedelta(seconds=9)
        await settle(store, [_settlement(job, end, OUTAGE[0] <= step < OUTAGE[1]) for job in claimed], end)


def _job(n: int, at: datetime, **over: Any) -> NewJob:
    task, queue, *_ = over.get("task") or TASKS[n % len(TASKS)]
    schedule = over.get("schedule")
    return NewJob(
        id=uuid7(int(at.timestamp() * 1000), n * 7919),
        task=task,
        queue=queue,
        tenant=over.get("tenant") or TENANTS[n % len(TENANTS)],
        tags=("eu",) if n % 3 else ("us", "priority"),
        payload_json=_json({"order_id": 40_000 + n, "address": f"customer{n % 90}@example.com"}),
        run_at=over.get("run_at"),
        max_attempts=3,
        origin="schedule" if schedule else "api",
        schedule=schedule,
        scheduled_for=at if schedule else None,
    )


def _settlement(job: Job, at: datetime, in_outage: bool) -> Settlement:
    seconds, one_in = next((t[2], t[3]) for t in TASKS if t[0] == job.task)
    number = int(job.payload["order_id"])
    took = seconds * (0.6 + (number * 37 % 100) / 70)
    failed = number * 7919 % one_in == 0 or (in_outage and job.task == "sync_inventory")
    error = _json(_error(job.task)) if failed else None
    return Settlement(
        job.id,
        job.lease_token,
        job.worker,
        job.queue,
        job.task,
        job.tenant,
        job.key,
        State.SUCCEEDED if not failed else State.QUEUED if job.attempt < job.max_attempts else State.FAILED,
        job.attempt,
        at - timedelta(seconds=9) + RETRY_AFTER,
        output_json=None if failed else _json({"done": True, "bytes": 2048 + number % 977}),
        error_json=error,
        started_at=at - timedelta(seconds=took),
        cost_cents=0.0 if failed else COSTS.get(job.task, 0.0),
        record=_attempt(job, at - timedelta(seconds=took), at, error) if failed else None,
    )


def _error(task: str) -> dict[str, str]:
    kind, message = ERRORS[task]
    trace = f'Traceback (most recent call last):\n  File "shop/tasks.py", line 88, in {task}\n    run(order)\n{kind}: {message}\n'
    return {"type": kind, "message": message, "traceback": trace}


def _attempt(job: Job, began: datetime, at: datetime, error: str | None) -> Attempt:
    logs = [LogLine(at=began, level="info", message=f"order {job.payload['order_id']} loaded")]
    return Attempt(
        job=job.id,
        attempt=job.attempt,
        lease_token=job.lease_token,
        outcome="failed",
        worker=job.worker,
        started_at=began,
        finished_at=at,
        error_json=error,
        logs_json=_json(logs),
    )


async def _today(store: Store, now: datetime) -> None:
    """Jobs that are running, due and due later now, and the workers."""
    soon = [_job(90_000 + i, now, run_at=now + timedelta(minutes=7 * i)) for i in range(1, 9)]
    await store.insert([_job(91_000 + i, now - timedelta(seconds=20)) for i in range(9)], now)
    running = await claim(
        store, ClaimRequest(worker="media-1", limit=4, lease_s=LEASE_S), now - timedelta(seconds=12)
    )
    await store.insert([*soon, *(_job(92_000 + i, now) for i in range(14))], now)
    for name, held in (("web-1", ()), ("media-1", running), ("nightly-2", ())):
        await store.heartbeat(_heartbeat(name, held, now), now)


def _heartbeat(name: str, held: Sequence[Job], now: datetime) -> Heartbeat:
    details = {
        "name": name,
        "host": f"{name}.shop.example",
        "pid": 4000 + len(name),
        "state": "running",
        "queues": None if name == "web-1" else ["media", "pdf", "sync"],
        "tasks": sorted({task for task, *_ in TASKS}),
        "concurrency": 8,
        "running": len(held),
        "finished": 700 + 11 * len(name),
        "started_at": now - timedelta(hours=9),
    }
    notes = [
        ProgressUpdate(
            id=job.id,
            lease_token=job.lease_token,
            progress_json=_json({"percent": 20 * i + 15, "message": f"page {i + 2} of 9"}),
        )
        for i, job in enumerate(held)
    ]
    leases = [Lease(id=job.id, lease_token=job.lease_token) for job in held]
    return Heartbeat(worker=name, document=_json(details), lease_s=LEASE_S, leases=leases, notes=notes)


async def _rules(app: Rota) -> None:
    """Limits, and what tenants may."""
    await app.limits.set("queue:mail", running=40)
    await app.limits.set("queue:sync", running=1)
    await app.limits.set("tenant:acme", running=20, rate="1000/h")
    await app.limits.set("task:charge_card", running=5, rate="100/m", burst=20)
    await app.limits.set("key:account:*", running=1)
    await app.limits.set("key:openai", rate="90000/m")
    await app.tenants.set(
        "acme", weight=3, max_priority=5, waiting=1000, schedules=2, budget="50.00/day", budget_alert=0.8
    )
    await app.tenants.set("globex", budget="20.00/day", budget_alert=0.5, retention_days=14)


async def _people(app: Rota) -> None:
    """Users, API tokens and a few actions for the audit log."""
    operations = {
        name: app.operations(Actor(name=name, role=role, payloads=True, via="http")) for name, role in PEOPLE
    }
    ada, grace = operations["ada"].access, operations["grace"].gates
    for name, role in PEOPLE:
        await ada.put_user(name, PutUserRequest(password="correct horse battery staple", role=role))
    await ada.create_token(CreateTokenRequest(role="operator", name="night shift", expires_s=90 * 86_400.0))
    await ada.create_token(CreateTokenRequest(role="viewer", name="wall display", tenant="acme"))
    await grace.pause(GateRequest(scope="queue", name="mail", reason="the provider is down", for_s=1800))
    await grace.pause(GateRequest(scope="queue", name="mail", reason="still down, ticket 4711", for_s=5400))
    await grace.pause(GateRequest(scope="tenant", name="initech", reason="over quota until they pay"))
    await grace.resume("tenant:initech")
    closed = DisableRequest(tenant="globex", reason="the books are closed")
    await operations["grace"].schedules.disable("month_end", closed)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
