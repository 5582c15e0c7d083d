"""How a claim is shared between queues: rota.claim is held to the pure function of core/jobs/admission.py."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rota.core.jobs.admission import Head, shares
from rota.model import NewJob
from rota.store.calls import claim
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, new_id, want

EXAMPLES = 160
RESET = """
UPDATE rota.segments SET (version, closed, old_segment, old_queue, old_rank, old_at, old_id) =
                         (version + 1, '{}', '{}', '{}', '{}', '{}', '{}')
"""
OPEN = "UPDATE rota.segments SET version = version + 1, newest = newest + 1, closed = closed || newest"


class Due(NamedTuple):
    """A due job, as a claim sees it."""

    queue: str
    priority: int
    age: int  # seconds that it has been due
    task: str


due_jobs = st.builds(
    Due,
    queue=st.sampled_from(["a", "b", "c", "d"]),
    priority=st.integers(-2, 2),
    age=st.integers(0, 5),
    task=st.sampled_from(["work", "work", "other"]),
)


def claim_by_the_rules(jobs: list[NewJob], limit: int) -> dict[str, list[str]]:
    """The ids that each queue gives, in the order of the queue, with the policy alone."""
    queues: dict[str, list[tuple[Head, str]]] = {}
    for job in jobs:
        queues.setdefault(job.queue, []).append(((-job.priority, job.run_at, job.id), job.id))
    for lane in queues.values():
        lane.sort()
    taken: dict[str, list[str]] = {}
    while (free := limit - sum(map(len, taken.values()))) > 0 and any(queues.values()):
        heads = {queue: lane[0][0] for queue, lane in queues.items() if lane}
        for queue, share, last_rank in list(shares(heads, free)):
            given = [id for (rank, _, _), id in queues[queue][:share] if rank <= last_rank]
            taken.setdefault(queue, []).extend(given)
            del queues[queue][: len(given)]
    return taken


@pytest.fixture
def emptied(migrated_postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        yield connection


def test_a_claim_is_shared_between_queues_as_the_policy_says(
    migrated_postgres_url: str, emptied: psycopg.Connection
) -> None:
    with asyncio.Runner() as runner:
        store = PostgresStore(migrated_postgres_url)
        runner.run(store.open())

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(
            dues=st.lists(due_jobs, max_size=25),
            limits=st.lists(st.integers(1, 12), min_size=1, max_size=3),
            known=st.sampled_from([None, ("work",)]),
            opened=st.sets(st.integers(0, 24), max_size=4),
            tidied=st.booleans(),
        )
        def check(
            dues: list[Due],
            limits: list[int],
            known: tuple[str, ...] | None,
            opened: set[int],  # before which jobs a new segment is opened
            tidied: bool,
        ) -> None:
            emptied.execute("TRUNCATE rota.queued, rota.running")
            emptied.execute(RESET)
            left = [
                NewJob(
                    id=new_id(),
                    task=due.task,
                    queue=due.queue,
                    priority=due.priority,
                    run_at=T0 - timedelta(seconds=due.age),
                )
                for due in dues
            ]
            cuts = [0, *(n for n in sorted(opened) if n < len(left)), len(left)]
            for start, stop in pairwise(cuts):
                runner.run(store.insert(left[start:stop], T0))
                emptied.execute(OPEN) if stop < len(left) else None
            if tidied:
                emptied.execute("SELECT rota.tidy(0, 0, true)")
            if known is not None:
                left = [job for job in left if job.task in known]
            for limit in limits:
                expected = claim_by_the_rules(left, limit)
                jobs = runner.run(claim(store, want(limit, tasks=known), T0))
                found: dict[str, list[str]] = {}
                for job in jobs:
                    found.setdefault(job.queue, []).append(job.id)
                assert found == expected
                left = [job for job in left if job.id not in {one.id for one in jobs}]

        check()
        runner.run(store.close())
