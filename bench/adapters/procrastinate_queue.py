"""procrastinate: async connector on a pool, LISTEN/NOTIFY on, 32 jobs at once; ``def`` tasks in threads."""

from __future__ import annotations

import contextlib

import procrastinate

from harness import CHUNK, OPTIONS, URL, NumberQuery, main, ran

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL, min_size=1, max_size=20))


async def plain(i, pad):
    ran(i)


def in_thread(i, pad):
    ran(i)


job = app.task(queue="bench", name="job")(in_thread if OPTIONS.get("handler") == "thread" else plain)


class Procrastinate:
    def __init__(self):
        self._query = NumberQuery()

    async def setup(self):
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    @contextlib.asynccontextmanager
    async def producer(self):
        async with app.open_async():

            async def one(payload):
                await job.defer_async(**payload)

            async def many(payloads):
                for first in range(0, len(payloads), CHUNK):
                    await job.batch_defer_async(*payloads[first : first + CHUNK])

            yield one, many

    async def work(self):
        async with app.open_async():
            await app.run_worker_async(queues=["bench"], concurrency=32)

    async def left(self):
        return await self._query("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')")


main(Procrastinate)
