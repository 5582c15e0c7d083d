"""Rows that were damaged behind the app's back: they fail by themselves and harm no other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rota import Rota, operate
from rota.tasks.handle import plain
from rota.testing import drain

PAYLOADS = {
    "wrong type": '{"n": "one"}',
    "missing": "{}",
    "unknown": '{"n": 1, "m": 2}',
    "a list": "[1]",
    "null": "null",
}
NOT_JSON = {"cut off": '{"n": ', "empty": "", "text": "hello"}


def damage(url: str, job_id: str, column: str, value: Any) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(Path(url.removeprefix("sqlite:///")))) as connection, connection:
            column = {"payload": "payload_json"}.get(column, column)
            connection.execute(f"UPDATE rota_jobs SET {column} = ? WHERE id = ?", (value, job_id))
        return
    with psycopg.connect(url) as other:
        other.execute(f"UPDATE rota.queued SET {column} = %s WHERE id = %s", (value, job_id))


async def one_bad_among_good(app: Rota, url: str, column: str, value: Any) -> Any:
    """The bad job after a drain, in which its mates must have run."""

    @app.task(max_attempts=5)
    async def work(n: int) -> int:
        return n

    jobs = list(await work.enqueue_many({"n": n} for n in range(3)))
    damage(url, jobs[1].id, column, value)
    assert await drain(app) == 3
    for good in (jobs[0], jobs[2]):
        assert (await good.refresh()).state == "succeeded"
    return await jobs[1].refresh()


@pytest.mark.parametrize("value", PAYLOADS.values(), ids=PAYLOADS)
async def test_a_payload_that_does_not_fit_fails_without_retries(app: Rota, app_url: str, value: str) -> None:
    bad = await one_bad_among_good(app, app_url, "payload", value)
    assert (bad.state, bad.attempt, bad.max_attempts) == ("failed", 1, 5)
    assert bad.error["type"].endswith("PayloadError")
    assert "task 'work'" in bad.error["message"]


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON)
async def test_a_payload_that_is_no_json_fails_without_retries(
    make_app: Any, sqlite_url: str, value: str
) -> None:
    app = make_app(sqlite_url)
    bad = await one_bad_among_good(app, sqlite_url, "payload", value)
    assert (bad.state, bad.attempt) == ("failed", 1)
    assert "not valid JSON" in bad.error["message"]
    assert plain(bad)["payload"] == {"unreadable": value}


@pytest.mark.parametrize("column", ["tags_json", "backoff_json"])
async def test_a_broken_side_column_harms_no_other_job(make_app: Any, sqlite_url: str, column: str) -> None:
    app = make_app(sqlite_url)

    @app.task
    async def work(n: int) -> int:
        return n

    jobs = list(await work.enqueue_many({"n": n} for n in range(3)))
    damage(sqlite_url, jobs[1].id, column, "{")
    async with app.running(heartbeat_thread=False, upkeep=False, poll_s=0.01):
        for good in (jobs[0], jobs[2]):
            assert await good.result(timeout=5) in (0, 2)
    page = await app.jobs()
    assert {jobs[0].id, jobs[2].id} <= {job.id for job in page.items}


async def test_a_job_with_a_broken_error_is_still_shown(make_app: Any, sqlite_url: str) -> None:
    app = make_app(sqlite_url)

    @app.task(max_attempts=1)
    async def broken() -> None:
        raise ValueError("no")

    job = await broken.enqueue()
    await drain(app)
    damage(sqlite_url, job.id, "error_json", "{")
    stored = await operate.get(await app.stores.get(), job.id)
    assert plain(stored)["error"] == {"unreadable": "{"}
