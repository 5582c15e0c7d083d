"""rota, by its public interface and with its default settings, on PostgreSQL or SQLite."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3

import uvloop

from harness import OPTIONS, URL, Asker, main, now_ns
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
    new_loop = staticmethod(uvloop.new_event_loop)  # of producers; the worker chooses it itself

    def __init__(self):
        self._ask = Asker()

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
            with open(os.path.join(os.environ["BENCH_LEDGER"], "claims.json"), "w") as file:
                json.dump(claims, file)

    async def left(self):
        """Jobs to run now, counted: app.stats() estimates where there are many."""
        return await self._ask(ON_POSTGRES) if "://" in URL else in_sqlite()


def time_claims():
    """The milliseconds that each claim takes from now on."""
    store = type(app.stores.root())
    turn, took = store.turn, []

    async def timed(self, changes, want, now):
        begun = now_ns()
        found = await turn(self, changes, want, now)
        if want is not None:
            took.append((now_ns() - begun) / 1e6)
        return found

    store.turn = timed
    return took


if __name__ == "__main__":
    main(Rota)
