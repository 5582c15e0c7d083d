"""rota, through its public interface and with default settings, on PostgreSQL or SQLite."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3

import uvloop
from msgspec.structs import replace

import rota_tasks
from harness import OPTIONS, URL, NumberQuery, main, now_ns
from rota.model import Limit, LimitRule
from rota_tasks import BEHIND, app, job

# Jobs that are due or run; those of the task "blocked" are there to be in the way.
ON_POSTGRES = """
    SELECT (SELECT count(*) FROM rota.queued WHERE due IS NOT false AND task <> 'blocked')
         + (SELECT count(*) FROM rota.running WHERE task <> 'blocked')
"""
IN_SQLITE = """
    SELECT (SELECT count(*) FROM rota_jobs WHERE state = 'queued' AND due <> 0 AND task <> 'blocked')
         + (SELECT count(*) FROM rota_jobs WHERE state = 'running' AND task <> 'blocked')
"""
FULL = "full"  # the key of a limit that one job fills


def in_sqlite():
    with contextlib.closing(sqlite3.connect(URL, timeout=30)) as connection:
        return connection.execute(IN_SQLITE).fetchone()[0]


class Rota:
    new_loop = staticmethod(uvloop.new_event_loop)  # for producers; the worker chooses its own

    def __init__(self):
        self._query = NumberQuery()

    async def setup(self):
        await app.migrate()
        rules = [
            LimitRule(name=name, chosen=Limit(**limit)) for name, limit in OPTIONS.get("rules", {}).items()
        ]
        if rules:
            store = await app.stores.get()
            assert all(await store.put_rules(rules, app.clock.now()))
        if BEHIND == "paused task":
            await app.pause(task="blocked")
        await app.close()

    @contextlib.asynccontextmanager
    async def producer(self):
        async def one(payload):
            await job.enqueue(**payload)

        if "labels" in OPTIONS:
            label_jobs()
        if OPTIONS.get("enqueue_blocked"):
            key = FULL if BEHIND == "full key" else None
            blocked = rota_tasks.blocked.options(concurrency_key=key)
            yield blocked.enqueue, blocked.enqueue_many
            await app.close()
            return

        async def many(payloads):
            queues = OPTIONS.get("queues", 1)
            if queues == 1:
                await job.enqueue_many(payloads)
            else:
                for q in range(queues):
                    await job.options(queue=f"queue-{q}").enqueue_many(payloads[q::queues])

        yield one, many
        await app.close()

    def work(self):
        claims = time_claims() if OPTIONS.get("time_claims") else None
        app.run(burst=OPTIONS.get("burst", False))
        if claims is not None:
            with open(os.path.join(os.environ["BENCH_LOG"], "claims.json"), "w") as file:
                json.dump(claims, file)

    async def left(self):
        """The exact number of due and running jobs: app.stats() estimates large numbers."""
        return await self._query(ON_POSTGRES) if "://" in URL else in_sqlite()


def label_jobs():
    """Give the jobs of each bulk call tenants and keys by their number, in turn: the worst case for locality.

    The baseline has its jobs copied just the same, so that this costs both alike.
    """
    store = type(app.stores.root())
    insert = store.insert
    tenants, keys, hot = (OPTIONS["labels"].get(name, 0) for name in ("tenants", "keys", "hot"))

    def labels(i):
        other = i // 100 * (100 - hot) + i % 100 - hot  # the number among the jobs of the other tenants
        tenant = "default" if not tenants else "t0" if i % 100 < hot else f"t{1 + other % (tenants - 1)}"
        key = None if not keys else f"k{i}" if keys == "unique" else f"k{i % keys}"
        return {"tenant": tenant, "concurrency_key": key}

    async def labelled(self, jobs, now, **given):
        jobs = [replace(new, **labels(i)) for i, new in enumerate(jobs)]
        return await insert(self, jobs, now, **given)

    store.insert = labelled


def time_claims():
    """Record the duration of each claim from now on, in milliseconds."""
    store = type(app.stores.root())
    turn, durations_ms = store.turn, []

    async def timed(self, changes, want, now):
        started = now_ns()
        found = await turn(self, changes, want, now)
        if want is not None:
            durations_ms.append((now_ns() - started) / 1e6)
        return found

    store.turn = timed
    return durations_ms


if __name__ == "__main__":
    main(Rota)
