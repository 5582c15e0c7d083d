"""What the tests of segments share: statements on the list of segments, and an old snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from rota.model import Job, State
from rota.store.calls import claim, settle
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, at, change, ids, new, want

ROUNDS = 400  # of a wait for the list of segments to change
CLAIM = (
    "SELECT count(*) - 1 FROM rota.claim("
    "'w1', %s, 3600, NULL, '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2030-01-01 12:00Z')"
)
TIDY = "SELECT rota.tidy(0, 0, true)"
LIST = "SELECT to_json(s) FROM rota.segments AS s ORDER BY version DESC LIMIT 1"
OPEN = "UPDATE rota.segments SET version = version + 1, newest = newest + 1, closed = closed || newest"


@contextmanager
def old_snapshot(url: str) -> Iterator[psycopg.Connection]:
    """Such as that of a dump, a long report or a forgotten transaction."""
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT FROM pg_class LIMIT 1")
        yield connection
        connection.rollback()


def listed(admin: psycopg.Connection) -> dict[str, Any]:
    ((found,),) = admin.execute(LIST).fetchall()
    return dict(found)


def is_settled(admin: psycopg.Connection) -> bool:
    """Whether claims look into one segment only, and no other can receive a job."""
    now = listed(admin)
    return not now["closed"] and not now["old_segment"] and not now["awaited"] and now["late_from"] is None


async def churn(store: PostgresStore, jobs: int, **fields: Any) -> None:
    """Store jobs, claim them and settle them, some at a time."""
    for _ in range(0, jobs, 1000):
        await store.insert([new(**fields) for _ in range(1000)], T0)
        taken: list[Job] = []
        while len(taken) < 1000:
            taken += await claim(store, want(500), at(1))
        await settle(store, [change(job, State.SUCCEEDED) for job in taken], at(1))


async def drain(store: PostgresStore, limit: int = 7, **fields: Any) -> list[str]:
    """All due jobs, in the order of their claims."""
    taken: list[str] = []
    while jobs := await claim(store, want(limit, **fields), at(1)):
        taken += ids(jobs)
    return taken
