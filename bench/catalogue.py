"""The benchmark scenarios and their entries. Data only."""

from __future__ import annotations

from typing import Any

from .scenario import Entry, Scenario
from .scenarios.behind import drain_behind, pickup_behind
from .scenarios.drain import backlog, drain, gaps
from .scenarios.enqueue import bulk, callers, single
from .scenarios.latency import pickup, sustained
from .scenarios.open_transaction import open_transaction

MILLION = 1_000_000


def _all(*peers: str, **options: Any) -> list[Entry]:
    return [Entry(peer, peer, options) for peer in peers]


def _rota(label: str, rounds: int | None = None, **options: Any) -> Entry:
    return Entry(label, "rota", options, rounds)


def _limits(label: str, peer: str = "rota", rounds: int | None = None, **options: Any) -> Entry:
    """``labels``: tenants, the percentage of the first of them, keys. ``rules``: limits by name."""
    labels = {name: options.pop(name) for name in ("tenants", "hot", "keys") if name in options}
    return Entry(label, peer, {"labels": labels, **options}, rounds)


def _behind(peer: str, blocked: int, rounds: int | None = None) -> list[Entry]:
    rules = {"key:full": {"running": 1}}  # a worker runs one of them, and the others wait for it
    return [
        Entry("nothing else", peer, {"blocked": 0}, rounds),
        *(
            Entry(what, peer, {"blocked": blocked, "behind": what, "rules": rules}, rounds)
            for what in ("full key", "paused task", "unknown task")
        ),
    ]


# Limits that never bind: what they cost is what is measured.
QUEUE_LIMIT = {"queue:default": {"running": 100_000}}
KEY_LIMIT = {"key:*": {"running": 1_000}}
KEY_RATE = {"key:*": {"rate": "1000000/s"}}
ONE_AT_A_TIME = {"key:*": {"running": 1}}

DRAIN = ("jobs_s", "worker_cpu_ms", "server_cpu_ms", "wal_bytes")
WAIT = ("p50_ms", "p95_ms", "p99_ms")

SCENARIOS = [
    Scenario(
        "drain1", "Drain, 1 worker process", drain, DRAIN,
        _all("rota", "graphile-worker", "pg-boss", "pgqueuer", "awa"), short=True,
    ),
    Scenario(
        "drain2", "Drain, 2 worker processes", drain, DRAIN,
        [*_all("rota", "graphile-worker", "pgqueuer", workers=2), _rota("rota, 1 process")], short=True,
    ),
    Scenario(
        "wal", "WAL from the bulk enqueue to the last job, no checkpoint", drain, ("wal_bytes",),
        _all("rota", "awa", "pgqueuer", "graphile-worker", vacuum=False, n=50_000), short=True,
    ),
    Scenario(
        "bulk", "Bulk enqueue", bulk, ("jobs_s", "wal_bytes"),
        _all("rota", "awa", "pg-boss", "graphile-worker", "pgqueuer"), short=True,
    ),
    Scenario(
        "single", "Single enqueue, one producer that awaits each", single, ("jobs_s",),
        [*_all("rota"), Entry("raw INSERT", "raw"), *_all("pgqueuer", "graphile-worker")], short=True,
    ),
    Scenario(
        "callers", "Single enqueue, 32 callers at once in one process", callers, ("jobs_s",),
        [*_all("rota", callers=32), Entry("32 raw connections", "raw", {"callers": 32})], short=True,
    ),
    Scenario(
        "pickup", "Pickup by an idle worker", pickup, (*WAIT, "idle_memory_mb", "idle_cpu_percent"),
        _all("rota", "graphile-worker", "pgqueuer"), short=True,
    ),
    Scenario(
        "sustained", "1,000 jobs a second for 20 s", sustained, WAIT,
        _all("rota", "pgqueuer", "graphile-worker"), short=True,
    ),
    Scenario(
        "sqlite-callers", "SQLite: single enqueue, 100 callers at once", callers, ("jobs_s",),
        [
            Entry("rota", "rota-sqlite", {"callers": 100}),
            Entry("huey", "huey", {"callers": 1}),
            Entry("huey, 100 threads", "huey", {"callers": 100}),
        ], short=True,
    ),
    Scenario(
        "sqlite-bulk", "SQLite: bulk enqueue", bulk, ("jobs_s",),
        [Entry("rota", "rota-sqlite"), *_all("litequeue")], short=True,
    ),
    Scenario(
        "sqlite-drain", "SQLite: drain, 1 worker process", drain, ("jobs_s", "worker_cpu_ms"),
        [Entry("rota", "rota-sqlite"), *_all("huey", "litequeue")], short=True,
    ),
    Scenario(
        "sqlite-pickup", "SQLite: pickup in another process", pickup,
        (*WAIT, "idle_memory_mb", "idle_cpu_percent"),
        [Entry("rota", "rota-sqlite"), *_all("litequeue", "huey")], short=True,
    ),
    Scenario(
        "limits", "Drain under limits that do not bind, and with tenants", drain,
        ("jobs_s", "worker_cpu_ms", "server_cpu_ms"),
        [
            _limits("plain"),
            _limits("limits of other queues", rules={"queue:other": {"running": 5}}),
            _limits("1,000 tenants", tenants=1_000),
            _limits("one tenant of 1,000 with 90 %", tenants=1_000, hot=90),
            _limits("a queue limit", rules=QUEUE_LIMIT),
            _limits("10,000 keys, running", keys=10_000, rules=KEY_LIMIT),
            _limits("10,000 keys and a queue limit", keys=10_000, rules=KEY_LIMIT | QUEUE_LIMIT),
            _limits("10,000 keys, rate", keys=10_000, rules=KEY_RATE),
            _limits("a key per job", keys="unique", rules=KEY_LIMIT),
            _limits("100 keys, running", keys=100, rules=KEY_LIMIT),
        ],
    ),
    Scenario(
        "limits2", "Drain under limits that do not bind, 2 worker processes", drain, DRAIN[:3],
        [
            _limits("plain", workers=2),
            _limits("10,000 keys and a queue limit", keys=10_000, rules=KEY_LIMIT | QUEUE_LIMIT, workers=2),
        ],
    ),
    Scenario(
        "limits-sqlite", "SQLite: drain under limits that do not bind, and with tenants", drain,
        ("jobs_s", "worker_cpu_ms"),
        [
            _limits("plain", "rota-sqlite"),
            _limits("1,000 tenants", "rota-sqlite", tenants=1_000),
            _limits("10,000 keys, running", "rota-sqlite", keys=10_000, rules=KEY_LIMIT),
        ],
    ),
    Scenario(
        "limits-bulk", "Bulk enqueue with tenants and keys", bulk, ("jobs_s", "wal_bytes"),
        [
            _limits("plain"),
            _limits("1,000 tenants", tenants=1_000),
            _limits("10,000 keys", keys=10_000, rules=KEY_LIMIT),
        ],
    ),
    Scenario(
        "limits-bulk-sqlite", "SQLite: bulk enqueue with tenants and keys", bulk, ("jobs_s",),
        [
            _limits("plain", "rota-sqlite"),
            _limits("1,000 tenants", "rota-sqlite", tenants=1_000),
            _limits("10,000 keys", "rota-sqlite", keys=10_000, rules=KEY_LIMIT),
        ],
    ),
    Scenario(
        "limits-full", "From one start to the next under a full limit of one at a time", gaps, WAIT,
        [
            _limits("a queue", n=1_000, rules={"queue:default": {"running": 1}}),
            _limits("a key", n=1_000, keys=1, rules=ONE_AT_A_TIME),
            _limits("a key, 2 worker processes", n=1_000, keys=1, rules=ONE_AT_A_TIME, workers=2),
            _limits("SQLite: a key", "rota-sqlite", n=1_000, keys=1, rules=ONE_AT_A_TIME),
        ],
    ),
    Scenario(
        "behind", "Drain behind 100,000 jobs that may not run", drain_behind, ("jobs_s", "meet_s"),
        _behind("rota", 100_000),
    ),
    Scenario(
        "behind-1M", "Drain behind 1M jobs that may not run", drain_behind, ("jobs_s", "meet_s"),
        _behind("rota", MILLION),
    ),
    Scenario(
        "behind-pickup", "Pickup behind 100,000 jobs that may not run", pickup_behind, (*WAIT, "meet_s"),
        _behind("rota", 100_000),
    ),
    Scenario(
        "behind-pickup-1M", "Pickup behind 1M jobs that may not run", pickup_behind, (*WAIT, "meet_s"),
        _behind("rota", MILLION, 1),
    ),
    Scenario(
        "behind-sqlite", "SQLite: drain behind 100,000 jobs that may not run", drain_behind,
        ("jobs_s", "meet_s"), _behind("rota-sqlite", 100_000),
    ),
    Scenario(
        "other-jobs", "Drain with other jobs in the store", drain, ("jobs_s", "handlers_s"),
        [
            _rota("nothing else"),
            _rota("1M finished", history=MILLION),
            _rota("1M due next month", later=MILLION),
        ],
    ),
    Scenario(
        "backlog", "The first 100,000 of a backlog", backlog, ("handlers_s",),
        [_rota("100k waiting", backlog=100_000), _rota("5M waiting", backlog=5 * MILLION)],
    ),
    Scenario(
        "other-jobs-10M", "Drain with 10M finished jobs in the store", drain, ("jobs_s",),
        [_rota("nothing else", 1), _rota("10M finished", 1, history=10 * MILLION)],
    ),
    Scenario(
        "handlers", "Drain, by kind of handler", drain, DRAIN,
        [
            _rota("async"),
            _rota("thread", n=50_000, handler="thread"),
            _rota("process", n=20_000, handler="process"),
            Entry("chancy, thread", "chancy", {"handler": "thread"}),
            Entry("procrastinate, thread", "procrastinate", {"handler": "thread"}),
        ],
    ),
    Scenario(
        "content", "Drain of larger and failing jobs", drain, DRAIN,
        [
            _rota("plain"),
            _rota("20 % fail once", n=100_000, handler="fails_once"),
            _rota("outputs of 10 kB", n=30_000, handler="large_output"),
            _rota("payloads of 10 kB", n=30_000, payload_bytes=10_000),
        ],
    ),
    Scenario(
        "grow-backlog", "Drain rate by backlog", backlog, ("handlers_s",),
        [
            _rota(f"{size:,}", 1, backlog=size)
            for size in (1_000, 10_000, 100_000, MILLION, 5 * MILLION)
        ],
    ),
    Scenario(
        "grow-history", "Drain rate by finished jobs", drain, ("jobs_s",),
        [_rota(f"{size:,}", 1, history=size) for size in (0, 10_000, 100_000, MILLION, 10 * MILLION)],
    ),
    Scenario(
        "grow-queues", "Drain rate by number of queues", drain, ("jobs_s",),
        [_rota(f"{count:,}", 1, queues=count) for count in (1, 10, 100, 1_000)],
    ),
    Scenario(
        "grow-workers", "Drain rate by worker processes", drain, ("jobs_s", "server_cpu_ms"),
        [_rota(str(count), 1, workers=count) for count in (1, 2, 4, 8)],
    ),
    Scenario(
        "open-transaction", "500 jobs a second while a transaction stays open for two minutes",
        open_transaction, ("jobs_s", "p99_ms", "claim_p99_ms", "dead_tuples", "dead_tuples_after"),
        [
            _rota("clean", 1, seconds=120, hold=False, time_claims=True),
            _rota("held open", 1, seconds=120, hold=True, time_claims=True),
        ],
    ),
]  # fmt: skip
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
