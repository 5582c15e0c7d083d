"""huey on SQLite: WAL (its default), fsync=True (rota's default durability), no stored results.

One consumer thread, polling every 10 to 50 ms; other counts were not tried.
"""

from __future__ import annotations

import contextlib
import logging

from huey import SqliteHuey

from harness import URL, main, ran

huey = SqliteHuey("bench", filename=URL, fsync=True, results=False)


@huey.task()
def job(i, pad):
    ran(i)


class Huey:
    def setup(self):
        pass

    @contextlib.contextmanager
    def producer(self):
        def one(payload):
            job(**payload)

        yield one, None

    def work(self):
        logging.getLogger("huey").setLevel(logging.ERROR)
        consumer = huey.create_consumer(
            workers=1, worker_type="thread", initial_delay=0.01, max_delay=0.05,
            periodic=False, check_worker_health=False,
        )  # fmt: skip
        consumer.run()

    def left(self):
        return huey.pending_count()


main(Huey)
