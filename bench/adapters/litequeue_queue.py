"""litequeue on SQLite, synchronous NORMAL: it has no worker, so this is the loop from its documentation."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time

from litequeue import LiteQueue

from harness import URL, main, ran

IDLE_S = 0.005


class Litequeue:
    def setup(self):
        LiteQueue(URL)

    @contextlib.contextmanager
    def producer(self):
        queue = LiteQueue(URL)

        def one(payload):
            queue.put(json.dumps(payload))

        def many(payloads):
            with queue.transaction():
                for payload in payloads:
                    queue.put(json.dumps(payload))

        yield one, many

    def work(self):
        queue = LiteQueue(URL)
        while True:
            message = queue.pop()
            if message is None:
                time.sleep(IDLE_S)
                continue
            ran(json.loads(message.data)["i"])
            queue.resolve(message.message_id)

    def left(self):
        with contextlib.closing(sqlite3.connect(URL, timeout=30)) as connection:
            return connection.execute("SELECT count(*) FROM Queue WHERE status < 2").fetchone()[0]


main(Litequeue)
