"""How long a job waits for an idle worker, and for one that has a steady thousand a second to run."""

from __future__ import annotations

import time

from ..ledger import check, first_starts
from ..meters import cpu_seconds, memory_mb
from ..setting import Entry, Figures, Setting, percentile

SETTLE_S = 3.0  # until an idle worker is really idle
IDLE_S = 5.0
WARM_UP = 10
GRACE_S = 30.0


def pickup(setting: Setting, entry: Entry) -> Figures:
    """A job every 50 ms for an idle worker: from just before the enqueue call to the handler's start."""
    n = setting.size(200) + WARM_UP
    with setting.stage(entry) as stage:
        ledger = setting.ledger(n)
        with stage.workers(1, ledger) as workers:
            time.sleep(SETTLE_S)
            pids = [worker.pid for worker in workers]
            before = cpu_seconds(pids)
            time.sleep(IDLE_S)
            idle_cpu = cpu_seconds(pids) - before
            memory = memory_mb(pids)
            asked = stage.role("spaced", n=n, gap=0.05)["asked"]
            stage.until(n, ledger, workers, GRACE_S)
            time.sleep(0.2)
        records = ledger.records()
    check(records, n)
    return {
        **waits_of(asked, first_starts(records), WARM_UP),
        "n": n - WARM_UP,
        "idle_memory_mb": memory,
        "idle_cpu_percent": idle_cpu / IDLE_S * 100,
    }


def sustained(setting: Setting, entry: Entry) -> Figures:
    """1,000 jobs a second, ten at a time: from when each should have gone to the handler's start."""
    rate, seconds = 1000, max(20 * setting.scale, 2)
    with setting.stage(entry) as stage:
        ledger = setting.ledger(int(rate * seconds))
        with stage.workers(1, ledger) as workers:
            time.sleep(SETTLE_S)
            found = stage.role("paced", rate=rate, seconds=seconds)
            stage.until(found["n"], ledger, workers, GRACE_S)
            time.sleep(0.2)
        records = ledger.records()
    check(records, found["n"])
    return {
        **waits_of(found["asked"], first_starts(records)),
        "n": found["n"],
        "late_ticks": found["late_ticks"],
    }


def waits_of(asked: list[int], starts: dict[int, int], skip: int = 0) -> Figures:
    """Percentiles, in milliseconds, of how long the jobs waited; the first ``skip`` left out."""
    waits = [(starts[i] - at) / 1e6 for i, at in enumerate(asked)][skip:]
    return {f"p{share}_ms": percentile(waits, share / 100) for share in (50, 95, 99)}
