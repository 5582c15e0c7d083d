"""rota, through its public interface and with default settings, on PostgreSQL or SQLite."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3

import uvloop

from harness import OPTIONS, URL, NumberQuery, main, now_ns
from rota_tasks import app, job

ON_POSTGRES = "SELECT (SELECT count(*) FROM rota.queued WHERE due) + (SELECT count(*) FROM rota.running)"
IN_SQLITE = """
    SELECT (SELECT count(*) FROM rota_jobs WHERE state = 'queued' AND due = 1)
         + (SELECT count(*) FROM rota_jobs WHERE state = 'running')
"""


def in_sqlite():
    with contextlib.closing(sqlite3.connect(URL, timeout=30)) as connection:
        return connection.execute(IN_SQLITE).fetchone()[0]


class Rota:
    new_loop = staticmethod(uvloop.new_event_loop)  # for producers; the worker chooses its own

    def __init__(self):
        self._query = NumberQuery()

    async def setup(self):
        await app.migrate()

    @contextlib.asynccontextmanager
    async def producer(self):
        async def one(payload):
            await job.enqueue(**payload)

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
