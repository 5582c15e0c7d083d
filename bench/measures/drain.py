"""Running jobs that wait: so many jobs, so many worker processes, until the store has nothing left."""

from __future__ import annotations

import time

from .. import fill
from ..errors import Failed
from ..ledger import check
from ..meters import WaitEvents, cpu_seconds, memory_mb
from ..setting import Entry, Figures, Setting

LIMIT_S = 180.0
AFTERWARDS_S = 0.3  # how long a job that ran may still run a second time and be noticed


def drain(setting: Setting, entry: Entry) -> Figures:
    """The clock runs from the first handler's start until the store itself says that every job has ended."""
    options = entry.options
    n = setting.size(options.get("n") or setting.peers[entry.peer].drain)
    fails_once = options.get("handler") == "fails_once"
    executions = n + (len(range(0, n, 5)) if fails_once else 0)
    with setting.stage(entry) as stage:
        fill.finished(stage, setting.size(options.get("history", 0)))
        fill.later(stage, setting.size(options.get("later", 0)))
        wal_before = stage.server.wal_bytes()
        stage.role("bulk", n=n)
        wal_stored = stage.server.wal_bytes() - wal_before
        if options.get("calm", True):
            stage.calm_down()
        ledger = setting.ledger(executions)
        with stage.waiter() as waiter, WaitEvents(stage.server_url) as waits:
            wal_before, cpu_before = stage.server.wal_bytes(), stage.server.cpu_seconds()
            with stage.workers(options.get("workers", 1), ledger) as workers:
                stage.until(executions, ledger, workers, LIMIT_S)
                ended_at = stage.nothing_left(waiter)
                pids = [worker.pid for worker in workers]
                worker_cpu = cpu_seconds(pids)
                server_cpu = stage.server.cpu_seconds() - cpu_before
                wal_run = stage.server.wal_bytes() - wal_before
                memory = memory_mb(pids)
                time.sleep(AFTERWARDS_S)
        records = ledger.records()
    check(records, n, lambda i: 2 if fails_once and i % 5 == 0 else 1)
    first, last = records[0][1], records[-1][1]
    return {
        "jobs_s": n / (ended_at - first) * 1e9,
        "handlers_s": n / max(last - first, 1) * 1e9,
        "n": n,
        "worker_cpu_ms": worker_cpu / n * 1e6,  # per 1,000 jobs
        "server_cpu_ms": server_cpu / n * 1e6,
        "wal_bytes": (wal_stored + wal_run) / n,
        "wal_run_bytes": wal_run / n,
        "memory_mb": memory,
        "waits": waits.shares,
    }


def backlog(setting: Setting, entry: Entry) -> Figures:
    """The first ``n`` of a backlog: how fast jobs begin when many more wait behind them."""
    waiting = setting.size(entry.options["backlog"])
    n = min(waiting, setting.size(entry.options.get("n", 100_000)))
    with setting.stage(entry) as stage:
        fill.waiting(stage, waiting)
        stage.calm_down()
        ledger = setting.ledger(waiting)
        with stage.workers(entry.options.get("workers", 1), ledger) as workers:
            stage.until(n, ledger, workers, LIMIT_S)
        records = ledger.records()
    if len({number for number, _ in records}) < len(records):
        raise Failed("a job of the backlog ran twice")
    return {"handlers_s": n / (records[n - 1][1] - records[0][1]) * 1e9, "n": n}
