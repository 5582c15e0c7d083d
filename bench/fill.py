"""Millions of jobs, as rota itself would have left them, made inside the database.

rota stores or runs one job in earnest; that row is copied by SQL with an id and instants of its own.
So the copies have every column that rota writes, whatever the schema is. PostgreSQL only.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from .ledger import Ledger
from .stage import Stage

AT_ONCE = 500_000  # rows per transaction
PAYLOAD = """('{"i":' || g - 1 || ',"pad":"' || repeat('x', 78) || '"}')::json"""


def finished(stage: Stage, n: int) -> None:
    """n jobs that succeeded within the last hours."""
    if not n:
        return
    _one_job(stage)
    with stage.workers(1, Ledger(stage.folder / "ledger-of-one", 10)) as workers:
        workers[0].wait(60)  # burst: it ends when the job has
    ago = f"interval '1 second' * (({n} - g) / 5000.0)"
    instants = {name: f"t.{name} - {ago}" for name in ("created_at", "run_at", "started_at", "finished_at")}
    _copy(stage, "rota.done", n, {"id": _id(instants["created_at"]), **instants})
    # and the count that the store keeps of them
    stage.server.run(f"UPDATE rota.tally SET n = n + {n} WHERE ctid = (SELECT ctid FROM rota.tally LIMIT 1)")
    _forget_first(stage)


def later(stage: Stage, n: int) -> None:
    """n jobs that are due next month."""
    if not n:
        return
    _one_job(stage)
    month = "t.run_at + interval '30 days' + interval '1 millisecond' * g"
    _copy(stage, "rota.queued", n, {"id": _id("t.created_at"), "run_at": month, "due": "false"})
    _forget_first(stage)


def waiting(stage: Stage, n: int) -> None:
    """n jobs that are due, numbered from 0 in the order in which they will run."""
    _one_job(stage)
    run_at = f"t.run_at - interval '1 microsecond' * ({n} - g)"
    _copy(stage, "rota.queued", n, {"id": _id("t.created_at"), "run_at": run_at, "payload": PAYLOAD})
    _forget_first(stage)


def _id(at: str) -> str:
    """SQL of a UUIDv7 of that instant, the number g in place of chance: unique, and growing as rota's own."""
    milliseconds = f"(extract(epoch FROM {at}) * 1000)::bigint"
    return f"(lpad(to_hex({milliseconds}), 12, '0') || '70008' || lpad(to_hex(g), 15, '0'))::uuid"


def _one_job(stage: Stage) -> None:
    stage.options["burst"] = True
    stage.role("bulk", n=1)


def _forget_first(stage: Stage) -> None:
    """The job that was copied must not count among the others."""
    stage.options.pop("burst", None)
    stage.server.run("DELETE FROM rota.queued WHERE id = (SELECT id FROM bench_first)")
    stage.server.run("DROP TABLE bench_first")


def _copy(stage: Stage, table: str, n: int, changed: Mapping[str, str]) -> None:
    """n copies of the only row of the table; ``changed``: SQL by column, of t (that row) and g (1 … n)."""
    with psycopg.connect(stage.url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE bench_first AS SELECT * FROM {table} LIMIT 1".encode())
        rows = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0",
            (table,),
        ).fetchall()
        columns = [row[0] for row in rows]
        values = ", ".join(changed.get(name, f"t.{name}") for name in columns)
        for first in range(1, n + 1, AT_ONCE):
            last = min(first + AT_ONCE - 1, n)
            connection.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} "
                f"FROM bench_first AS t, generate_series({first}, {last}) AS g".encode()
            )
