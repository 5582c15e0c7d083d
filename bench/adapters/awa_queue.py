"""awa: Rust core, Python handler; bulk by its COPY call.

A handler that does nothing holds its permit until the completion is durable, so permits limit
the rate, as awa's notes on benchmarking say: hence 1,024 of them, and completions in batches of 512.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass

os.environ.setdefault("AWA_COMPLETION_BATCH_SIZE", "512")

import awa

from harness import URL, main, ran

PERMITS = 1024
COPY_BATCH = 50_000
LIVE = ("scheduled", "available", "retryable", "running", "waiting_external")


@dataclass
class Work:
    i: int
    pad: str


class Awa:
    def __init__(self):
        self._client = None

    async def setup(self):
        client = awa.AsyncClient(URL)
        await client.migrate()
        client.task(Work, queue="bench")(self._handle)
        await client.start([("bench", 1)])  # the first start chooses how a fresh schema stores its queues
        await client.shutdown()
        await client.close()

    @contextlib.asynccontextmanager
    async def producer(self):
        client = awa.AsyncClient(URL)

        async def one(payload):
            await client.insert(Work(**payload), queue="bench")

        async def many(payloads):
            for first in range(0, len(payloads), COPY_BATCH):
                some = [Work(**p) for p in payloads[first : first + COPY_BATCH]]
                await client.enqueue_many_copy(some, queue="bench")

        yield one, many
        await client.close()

    async def work(self):
        client = awa.AsyncClient(URL, max_connections=20)
        client.task(Work, queue="bench")(self._handle)
        await client.start([{"name": "bench", "max_workers": PERMITS}])
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()
        await client.shutdown()

    async def _handle(self, job):
        ran(job.args.i)

    async def left(self):
        self._client = self._client or awa.AsyncClient(URL)
        queues = [q for q in await self._client.queue_stats() if q.queue == "bench"]
        return sum(getattr(q, name) for q in queues for name in LIVE)


main(Awa)
