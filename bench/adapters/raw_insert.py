"""No queue: only the INSERT that every job needs. asyncpg, prepared, one commit each; no worker."""

from __future__ import annotations

import contextlib
import json
import uuid

import asyncpg
import uvloop

from harness import URL, NumberQuery, main

TABLE = """
    CREATE TABLE raw_jobs (
        id uuid PRIMARY KEY, queue text NOT NULL, task text NOT NULL, payload json NOT NULL,
        run_at timestamptz NOT NULL DEFAULT now());
"""


class Raw:
    own_producers = True  # as many connections as callers
    new_loop = staticmethod(uvloop.new_event_loop)

    def __init__(self):
        self._query = NumberQuery()

    async def setup(self):
        connection = await asyncpg.connect(URL)
        await connection.execute(TABLE)
        await connection.close()

    @contextlib.asynccontextmanager
    async def producer(self):
        connection = await asyncpg.connect(URL)
        insert = await connection.prepare(
            "INSERT INTO raw_jobs (id, queue, task, payload) VALUES ($1, $2, $3, $4)"
        )

        async def one(payload):
            await insert.fetch(uuid.uuid4(), "default", "job", json.dumps(payload))

        yield one, None
        await connection.close()

    async def left(self):
        return await self._query("SELECT count(*) FROM raw_jobs")


main(Raw)
