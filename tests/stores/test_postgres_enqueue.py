"""PostgreSQL: producers that speak SQL only."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest
from psycopg import errors
from psycopg.rows import dict_row
from psycopg.types.json import Json

from rota.core.jobs.key_templates import fill
from rota.store.postgres.waker import hint_of


@pytest.fixture
def sql(migrated_postgres_url: str) -> Any:
    with psycopg.connect(migrated_postgres_url, autocommit=True, row_factory=dict_row) as connection:
        yield connection


def jobs(sql: Any) -> list[dict[str, Any]]:
    return list(sql.execute("SELECT * FROM rota.jobs ORDER BY created_at"))


def test_a_job_enqueued_with_sql_has_the_given_values_and_defaults(sql: Any) -> None:
    row = sql.execute(
        "SELECT rota.enqueue('send', '{\"order\": 42}', queue => 'mail', priority => 7, tenant => 'acme', "
        "key => 'k', max_attempts => 5, tags => '{a,b}') AS id"
    ).fetchone()
    (job,) = jobs(sql)
    assert job["id"] == row["id"] and row["id"].version == 7
    assert (job["task"], job["payload"], job["queue"], job["priority"]) == ("send", {"order": 42}, "mail", 7)
    assert (job["tenant"], job["key"], job["max_attempts"], job["tags"]) == ("acme", "k", 5, ["a", "b"])
    assert (job["state"], job["origin"], job["run_at"]) == ("queued", "sql", job["created_at"])


def test_a_task_alone_is_enough(sql: Any) -> None:
    sql.execute("SELECT rota.enqueue('send')")
    (job,) = jobs(sql)
    assert (job["payload"], job["queue"], job["tenant"], job["max_attempts"]) == ({}, "default", "default", 3)


def test_a_delay_counts_from_now(sql: Any) -> None:
    sql.execute("SELECT rota.enqueue('send', delay => '90 minutes')")
    sql.execute("SELECT rota.enqueue('send', delay => make_interval(secs => 5400))")
    sql.execute("SELECT rota.enqueue('send', run_at => '2030-01-01 12:00Z')")
    waits = [job["run_at"] - job["created_at"] for job in jobs(sql)[:2]]
    assert [wait.total_seconds() for wait in waits] == [5400, 5400]
    assert sql.execute("SELECT count(*) AS n FROM rota.queued WHERE due").fetchone() == {"n": 0}


def test_an_expiry_counts_from_when_the_job_is_due(sql: Any) -> None:
    sql.execute("SELECT rota.enqueue('send', delay => '1 hour', expires => '15 minutes', keep => '2 days')")
    (job,) = jobs(sql)
    assert ((job["expires_at"] - job["run_at"]).total_seconds(), job["keep"]) == (900, 172800)


def test_ids_made_in_sql_grow_with_time(sql: Any) -> None:
    made = [sql.execute("SELECT rota.enqueue('send') AS id").fetchone()["id"] for _ in range(2)]
    sql.execute("SELECT pg_sleep(0.002)")
    made.append(sql.execute("SELECT rota.enqueue('send') AS id").fetchone()["id"])
    assert made[2] > max(made[:2]) and all(isinstance(one, uuid.UUID) for one in made)


def test_a_job_exists_if_and_only_if_its_transaction_commits(sql: Any, migrated_postgres_url: str) -> None:
    with psycopg.connect(migrated_postgres_url) as other:
        other.execute("SELECT rota.enqueue('send')")
        assert jobs(sql) == []
        other.rollback()
        other.execute("SELECT rota.enqueue('kept')")
    assert [job["task"] for job in jobs(sql)] == ["kept"]


def test_workers_are_woken_at_commit_once_per_queue(sql: Any, migrated_postgres_url: str) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as listener:
        listener.execute("LISTEN rota_wake")
        with sql.transaction():
            for queue in ("mail", "mail", "default", "mail"):
                sql.execute("SELECT rota.enqueue('send', queue => %s)", (queue,))
            listener.execute("SELECT 1")
            assert list(listener.notifies(timeout=0)) == []
        heard = [notice.payload for notice in listener.notifies(timeout=30, stop_after=2)]
        listener.execute("SELECT 1")
        heard += [notice.payload for notice in listener.notifies(timeout=0)]
    assert sorted(heard) == sorted(map(hint_of, ("default", "mail")))


def test_a_held_key_returns_its_holder_or_is_refused(sql: Any) -> None:
    first = sql.execute("SELECT rota.enqueue('send', key => 'k') AS id").fetchone()
    assert sql.execute("SELECT rota.enqueue('send', key => 'k') AS id").fetchone() == first
    with pytest.raises(errors.UniqueViolation, match=str(first["id"])):
        sql.execute("SELECT rota.enqueue('send', key => 'k', on_conflict => 'raise')")
    sql.execute("SELECT rota.enqueue('other', key => 'k', on_conflict => 'replace')")
    assert [job["task"] for job in jobs(sql)] == ["other"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("''", "task is empty"),
        ("NULL", "task is empty"),
        ("repeat('x', 201)", "task is .* must have 1 to 200 printable characters"),
        ("E'a\\nb'", "printable"),
        ("'send', '[1]'", "JSON object such as .*, not array"),
        ("'send', '7'", "not number"),
        ("'send', 'null'", "not null"),
        ("'send', NULL", "leave it out"),
        ("'send', queue => ''", "queue is ''"),
        ("'send', tenant => ''", "tenant is ''"),
        ("'send', key => ''", "key is ''"),
        ("'send', tags => '{\"\"}'", "tag is ''"),
        ("'send', tags => array_fill('t'::text, ARRAY[21])", "at most 20 tags, 21"),
        ("'send', on_conflict => 'ignore'", "must be return, raise or replace"),
        ("'send', max_attempts => 0", "max_attempts is 0, but must be from 1 to 100"),
        ("'send', priority => -2147483648", "priority is -2147483648"),
        ("'send', timeout => 0", "timeout is 0"),
        ("'send', expires => '0'", "expires is 00:00:00"),
        ("'send', keep => '-1 day'", "keep is -1 days"),
        ("'send', timeout => 'NaN'", "timeout is NaN"),
        ("'send', run_at => now(), delay => '1 hour'", "both given: keep one"),
        ("'send', run_at => 'infinity'", "run_at is infinity"),
    ],
)
def test_a_wrong_parameter_is_named(sql: Any, call: str, said: str) -> None:
    with pytest.raises(errors.InvalidParameterValue, match=said):
        sql.execute(f"SELECT rota.enqueue({call})".encode())
    assert jobs(sql) == []


def test_a_payload_that_is_not_json_is_refused_by_the_server(sql: Any) -> None:
    with pytest.raises(errors.InvalidTextRepresentation, match="json"):
        sql.execute("SELECT rota.enqueue('send', '{order: 42}')")


def test_null_options_mean_the_defaults(sql: Any) -> None:
    sql.execute(
        "SELECT rota.enqueue('send', queue => NULL, priority => NULL, tenant => NULL, max_attempts => NULL, "
        "on_conflict => NULL, auto_remove => NULL, tags => NULL, key => 'k')"
    )
    sql.execute("SELECT rota.enqueue('send', on_conflict => NULL, key => 'k')")
    (job,) = jobs(sql)
    assert (job["queue"], job["tenant"], job["priority"], job["max_attempts"]) == ("default", "default", 0, 3)


def publish(sql: Any, **options: Any) -> None:
    sql.execute(
        "INSERT INTO rota.documents (kind, key, version, updated_at, body) "
        "VALUES ('task', 'send', 1, now(), %s)",
        (Json({"options": options}),),
    )


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("account:{id}", "account:7"),
        ("{a.b}/{name}/{paid}{none}", "1.5/ä {x}/truenull"),
        ("{{id}}:{id}:{0}{ }", "{id}:7:{0}{ }"),
        ("plain", "plain"),
    ],
)
def test_a_jobs_concurrency_key_is_filled_from_its_payload_as_by_the_program(
    sql: Any, template: str, key: str
) -> None:
    payload = '{"id":7,"a":{"b":1.5},"name":"ä {x}","paid":true,"none":null}'
    assert fill("concurrency_key", template, payload) == key
    publish(sql, concurrency_key=template, units=2, price=1.5)
    sql.execute("SELECT rota.enqueue('send', %s)", (payload,))
    sql.execute("SELECT rota.enqueue('send', concurrency_key => 'own', units => 3, price => 0)")
    found = [(job["concurrency_key"], job["units"], job["price"]) for job in jobs(sql)]
    assert found == [(key, 2, 1.5), ("own", 3, 0.0)]


def test_what_a_job_counts_under_is_checked_in_sql_too(sql: Any) -> None:
    publish(sql, concurrency_key="account:{id}")
    sql.execute(
        "INSERT INTO rota.limits (name, scope, subject, every_ns, burst) VALUES "
        "('key:a:*', 'family', 'a:', 1000, 10), ('key:a:big', 'key', 'a:big', 1000, 99), "
        "('queue:mail', 'queue', 'mail', 1000, 5)"
    )
    sql.execute("SELECT rota.enqueue('x', concurrency_key => 'a:1', units => 10)")
    sql.execute("SELECT rota.enqueue('x', concurrency_key => 'a:big', units => 11)")
    for call, said in (
        ("'send'", "payload has no text or number id"),
        ("'x', units => 0", "units is 0, but must be from 1"),
        ("'x', price => -1", "price is -1, but must be"),
        ("'x', concurrency_key => repeat('x', 201)", "concurrency_key is"),
        ("'x', concurrency_key => 'a:1', units => 11", "units is 11, but the burst of limit key:a:* is 10"),
        ("'x', queue => 'mail', units => 6", "units is 6, but the burst of limit queue:mail is 5"),
    ):
        with pytest.raises(errors.InvalidParameterValue) as caught:
            sql.execute(f"SELECT rota.enqueue({call})")
        assert said in str(caught.value)
