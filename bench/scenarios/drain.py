"""Drains: worker processes run a number of due jobs until the store has none left."""

from __future__ import annotations

import time
from itertools import pairwise

from .. import prefill
from ..errors import MeasurementFailed
from ..execution_log import check
from ..scenario import Entry, Metrics, RunContext, percentile
from ..system_metrics import WaitEvents, cpu_seconds, memory_mb
from ..trial import Trial

LIMIT_S = 180.0
REPEAT_S = 0.3  # time in which a second execution of a job is still noticed


def drain(context: RunContext, entry: Entry) -> Metrics:
    """Measure from the start of the first handler until the store reports every job finished."""
    options = entry.options
    n = context.size(options.get("n") or context.peers[entry.peer].drain)
    fails_once = options.get("handler") == "fails_once"
    with context.trial(entry) as trial:
        prefill.add_finished(trial, context.size(options.get("history", 0)))
        prefill.add_due_later(trial, context.size(options.get("later", 0)))
        wal_before = trial.server.wal_bytes()
        trial.run_role("bulk", n=n)
        wal_stored = trial.server.wal_bytes() - wal_before
        if options.get("vacuum", True):
            trial.vacuum_and_checkpoint()
        found = drain_stored(context, trial, n, fails_once=fails_once)
    return {**found, "wal_bytes": wal_stored / n + found["wal_run_bytes"]}


def drain_stored(context: RunContext, trial: Trial, n: int, *, fails_once: bool = False) -> Metrics:
    """Drain the n jobs that are stored, with as many workers as the options say."""
    executions = n + (len(range(0, n, 5)) if fails_once else 0)
    log = context.execution_log(executions)
    with trial.waiter() as waiter, WaitEvents(trial.server_url) as waits:
        wal_before, cpu_before = trial.server.wal_bytes(), trial.server.cpu_seconds()
        with trial.workers(trial.options.get("workers", 1), log) as workers:
            trial.wait_for_executions(executions, log, workers, LIMIT_S)
            finished_at = trial.wait_until_empty(waiter)
            pids = [worker.pid for worker in workers]
            worker_cpu = cpu_seconds(pids)
            server_cpu = trial.server.cpu_seconds() - cpu_before
            wal_run = trial.server.wal_bytes() - wal_before
            memory = memory_mb(pids)
            time.sleep(REPEAT_S)
    records = log.records()
    check(records, n, lambda i: 2 if fails_once and i % 5 == 0 else 1)
    first, last = records[0][1], records[-1][1]
    return {
        "jobs_s": n / (finished_at - first) * 1e9,
        "handlers_s": n / max(last - first, 1) * 1e9,
        "n": n,
        "worker_cpu_ms": worker_cpu / n * 1e6,  # per 1,000 jobs
        "server_cpu_ms": server_cpu / n * 1e6,
        "wal_run_bytes": wal_run / n,
        "memory_mb": memory,
        "waits": waits.shares,
    }


def gaps(context: RunContext, entry: Entry) -> Metrics:
    """The time from one start to the next while a limit lets jobs that take no time run one at a time."""
    n = context.size(entry.options["n"])
    with context.trial(entry) as trial:
        trial.run_role("bulk", n=n)
        trial.vacuum_and_checkpoint()
        log = context.execution_log(n)
        with trial.workers(entry.options.get("workers", 1), log) as workers:
            trial.wait_for_executions(n, log, workers, LIMIT_S)
        records = log.records()
    check(records, n)
    waits = [(later - at) / 1e6 for (_, at), (_, later) in pairwise(records)]
    return {**{f"p{share}_ms": percentile(waits, share / 100) for share in (50, 95, 99)}, "n": n}


def backlog(context: RunContext, entry: Entry) -> Metrics:
    """Measure how fast the first ``n`` jobs of a backlog start when many more are due after them."""
    backlog_size = context.size(entry.options["backlog"])
    n = min(backlog_size, context.size(entry.options.get("n", 100_000)))
    with context.trial(entry) as trial:
        prefill.add_due(trial, backlog_size)
        trial.vacuum_and_checkpoint()
        log = context.execution_log(backlog_size)
        with trial.workers(entry.options.get("workers", 1), log) as workers:
            trial.wait_for_executions(n, log, workers, LIMIT_S)
        records = log.records()
    if len({number for number, _ in records}) < len(records):
        raise MeasurementFailed("a job of the backlog ran twice")
    return {"handlers_s": n / (records[n - 1][1] - records[0][1]) * 1e9, "n": n}
