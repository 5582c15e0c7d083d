"""pgqueuer: its asyncpg driver, uvloop, its own autovacuum advice, batches of 500."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from harness import CHUNK, URL, NumberQuery, main, ran

BATCH = 500


class Pgqueuer:
    new_loop = staticmethod(uvloop.new_event_loop)

    def __init__(self):
        self._query = NumberQuery()

    async def setup(self):
        connection = await asyncpg.connect(URL)
        queries = Queries(AsyncpgDriver(connection))
        await queries.install()
        await queries.optimize_autovacuum()
        await connection.close()

    @contextlib.asynccontextmanager
    async def producer(self):
        connection = await asyncpg.connect(URL)
        queries = Queries(AsyncpgDriver(connection))

        async def one(payload):
            await queries.enqueue("job", json.dumps(payload).encode())

        async def many(payloads):
            for first in range(0, len(payloads), CHUNK):
                some = [json.dumps(p).encode() for p in payloads[first : first + CHUNK]]
                await queries.enqueue(["job"] * len(some), some, [0] * len(some))

        yield one, many
        await connection.close()

    async def work(self):
        queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(URL)))

        @queuer.entrypoint("job")
        async def handle(job):
            ran(json.loads(job.payload)["i"])

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queuer.shutdown.set)
        await queuer.run(batch_size=BATCH)

    async def left(self):
        return await self._query("SELECT count(*) FROM pgqueuer")


main(Pgqueuer)
