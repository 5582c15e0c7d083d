"""Adds millions of jobs, exactly as rota would have stored them, inside the database.

rota stores or runs one real job, and SQL copies its row with new ids and times. So the copies have
every column that rota writes, whatever the schema is. PostgreSQL only.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from .execution_log import ExecutionLog
from .trial import Trial

BATCH = 500_000  # rows per transaction
PAYLOAD = """('{"i":' || g - 1 || ',"pad":"' || repeat('x', 78) || '"}')::json"""


def add_finished(trial: Trial, n: int) -> None:
    """Add n jobs that succeeded within the last hours."""
    if not n:
        return
    _enqueue_one(trial)
    with trial.workers(1, ExecutionLog(trial.folder / "log-of-one", 10)) as workers:
        workers[0].wait(60)  # burst: it exits when the job has finished
    ago = f"interval '1 second' * (({n} - g) / 5000.0)"
    times = {name: f"t.{name} - {ago}" for name in ("created_at", "run_at", "started_at", "finished_at")}
    _copy(trial, "rota.done", n, {"id": _id(times["created_at"]), **times})
    # the store also keeps a count of them
    trial.server.run(f"UPDATE rota.tally SET n = n + {n} WHERE ctid = (SELECT ctid FROM rota.tally LIMIT 1)")
    _delete_template(trial)


def add_due_later(trial: Trial, n: int) -> None:
    """Add n jobs that are due next month."""
    if not n:
        return
    _enqueue_one(trial)
    month = "t.run_at + interval '30 days' + interval '1 millisecond' * g"
    _copy(trial, "rota.queued", n, {"id": _id("t.created_at"), "run_at": month, "due": "false"})
    _delete_template(trial)


def add_due(trial: Trial, n: int) -> None:
    """Add n due jobs, numbered from 0 in the order in which they will run."""
    _enqueue_one(trial)
    run_at = f"t.run_at - interval '1 microsecond' * ({n} - g)"
    _copy(trial, "rota.queued", n, {"id": _id("t.created_at"), "run_at": run_at, "payload": PAYLOAD})
    _delete_template(trial)


def _id(at: str) -> str:
    """SQL for a UUIDv7 of that time, with the number g instead of random bits: unique and increasing."""
    milliseconds = f"(extract(epoch FROM {at}) * 1000)::bigint"
    return f"(lpad(to_hex({milliseconds}), 12, '0') || '70008' || lpad(to_hex(g), 15, '0'))::uuid"


def _enqueue_one(trial: Trial) -> None:
    trial.options["burst"] = True
    trial.run_role("bulk", n=1)


def _delete_template(trial: Trial) -> None:
    """Delete the job that was copied, so that it does not count."""
    trial.options.pop("burst", None)
    trial.server.run("DELETE FROM rota.queued WHERE id = (SELECT id FROM bench_template)")
    trial.server.run("DROP TABLE bench_template")


def _copy(trial: Trial, table: str, n: int, changed: Mapping[str, str]) -> None:
    """Copy the only row of the table n times. ``changed``: SQL by column, of t (that row) and g (1 … n)."""
    with psycopg.connect(trial.url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE bench_template AS SELECT * FROM {table} LIMIT 1".encode())
        rows = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0",
            (table,),
        ).fetchall()
        columns = [row[0] for row in rows]
        values = ", ".join(changed.get(name, f"t.{name}") for name in columns)
        for first in range(1, n + 1, BATCH):
            last = min(first + BATCH - 1, n)
            connection.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} "
                f"FROM bench_template AS t, generate_series({first}, {last}) AS g".encode()
            )
