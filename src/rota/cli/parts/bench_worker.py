"""A worker process of ``rota bench``: one task that only reports that it ran, and when.

Serves its own queue only, fires no schedules and does no maintenance: on a store in use it must touch
nothing but the benchmark's jobs.
"""

from __future__ import annotations

import os
import struct
from typing import Any

from ...app import Rota
from ...runtime.clock import monotonic
from ...tasks.task import Task
from . import supervisor

QUEUE = TASK = "rota-bench"
RECORD = struct.Struct("<qd")  # job number, monotonic time


def bench_app(url: str | None = None) -> tuple[Rota, Task[..., Any]]:
    """An app with one task, whose jobs are removed when they succeed."""
    app = Rota(url)

    @app.task(name=TASK, queue=QUEUE, auto_remove=True)
    async def nothing(i: int, pad: str) -> None:
        os.write(1, RECORD.pack(i, monotonic()))

    return app, nothing


def main() -> None:
    app, _ = bench_app()
    with supervisor.watching_parent():
        app.run(queues=[QUEUE], scheduler=False, upkeep=False, name="bench")


if __name__ == "__main__":
    main()
