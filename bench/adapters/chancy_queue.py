"""chancy: eager polling and notifications on, 64 jobs at once; its thread executor for plain functions."""

from __future__ import annotations

import contextlib
import logging

from chancy import Chancy, Queue, Worker

import chancy_tasks
from harness import OPTIONS, URL, NumberQuery, main

THREADS = OPTIONS.get("handler") == "thread"
job = chancy_tasks.in_thread if THREADS else chancy_tasks.plain
quiet = logging.getLogger("quiet")
quiet.setLevel(logging.ERROR)


class ChancyQueue:
    def __init__(self):
        self._query = NumberQuery()

    async def setup(self):
        executor = Chancy.Executor.Threaded if THREADS else Chancy.Executor.Async
        async with Chancy(URL, log=quiet) as chancy:
            await chancy.migrate()
            await chancy.declare(
                Queue("default", concurrency=64, executor=executor, polling_interval=1, eager_polling=True)
            )

    @contextlib.asynccontextmanager
    async def producer(self):
        async with Chancy(URL, log=quiet) as chancy:

            async def one(payload):
                await chancy.push(job.job.with_kwargs(**payload))

            async def many(payloads):
                async for _ in chancy.push_many([job.job.with_kwargs(**p) for p in payloads]):
                    pass

            yield one, many

    async def work(self):
        async with Chancy(URL, log=quiet) as chancy, Worker(chancy) as worker:
            await worker.wait_for_shutdown()

    async def left(self):
        return await self._query(
            "SELECT count(*) FROM chancy_jobs WHERE state NOT IN ('succeeded', 'failed')"
        )


main(ChancyQueue)
