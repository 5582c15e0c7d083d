"""Latency: how long a job waits for an idle worker, and for one under a steady load."""

from __future__ import annotations

import time

from ..execution_log import check, first_starts
from ..scenario import Entry, Metrics, RunContext, percentile
from ..system_metrics import cpu_seconds, memory_mb
from ..trial import Trial

SETTLE_S = 3.0  # until a started worker is idle
IDLE_S = 5.0
WARM_UP = 10
GRACE_S = 30.0


def pickup(context: RunContext, entry: Entry) -> Metrics:
    """One job every 50 ms for an idle worker, from the enqueue call to the start of its handler."""
    with context.trial(entry) as trial:
        return pick_up(context, trial)


def pick_up(context: RunContext, trial: Trial) -> Metrics:
    """The same on a store that is prepared."""
    n = context.size(200) + WARM_UP
    log = context.execution_log(n)
    with trial.workers(1, log) as workers:
        time.sleep(SETTLE_S)
        pids = [worker.pid for worker in workers]
        before = cpu_seconds(pids)
        time.sleep(IDLE_S)
        idle_cpu = cpu_seconds(pids) - before
        memory = memory_mb(pids)
        requested_at = trial.run_role("spaced", n=n, gap=0.05)["requested_at"]
        trial.wait_for_executions(n, log, workers, GRACE_S)
        time.sleep(0.2)
    records = log.records()
    check(records, n)
    return {
        **wait_percentiles(requested_at, first_starts(records), WARM_UP),
        "n": n - WARM_UP,
        "idle_memory_mb": memory,
        "idle_cpu_percent": idle_cpu / IDLE_S * 100,
    }


def sustained(context: RunContext, entry: Entry) -> Metrics:
    """1,000 jobs a second, ten at a time, from each job's intended time to the start of its handler."""
    rate, seconds = 1000, max(20 * context.scale, 2)
    with context.trial(entry) as trial:
        log = context.execution_log(int(rate * seconds))
        with trial.workers(1, log) as workers:
            time.sleep(SETTLE_S)
            found = trial.run_role("paced", rate=rate, seconds=seconds)
            trial.wait_for_executions(found["n"], log, workers, GRACE_S)
            time.sleep(0.2)
        records = log.records()
    check(records, found["n"])
    return {
        **wait_percentiles(found["requested_at"], first_starts(records)),
        "n": found["n"],
        "late_ticks": found["late_ticks"],
    }


def wait_percentiles(requested_at: list[int], starts: dict[int, int], skip: int = 0) -> Metrics:
    """Percentiles of the jobs' waits in milliseconds, without the first ``skip`` jobs."""
    waits = [(starts[i] - at) / 1e6 for i, at in enumerate(requested_at)][skip:]
    return {f"p{share}_ms": percentile(waits, share / 100) for share in (50, 95, 99)}
