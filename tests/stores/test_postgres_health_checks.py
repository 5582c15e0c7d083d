"""PostgreSQL: what an examination finds, and that each trouble has its remedy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

import psycopg
import pytest

from rota.errors import StoreUnavailable
from rota.model import Finding, State
from rota.store.calls import settle
from rota.store.postgres import connection_probes, health_checks
from rota.store.postgres.store import PostgresStore
from rota.store.postgres.url import parse
from rota.testing.conformance.factories import T0, at, change, running

NOW = datetime.now(UTC)


def of(found: Sequence[Finding], check: str) -> list[Finding]:
    return [finding for finding in found if finding.check == check]


def troubles(found: Sequence[Finding]) -> list[Finding]:
    bad = [finding for finding in found if finding.level != "ok"]
    assert all(finding.remedy for finding in bad), bad
    return bad


async def test_a_sound_store_has_a_fine_finding_for_every_check(store: PostgresStore) -> None:
    found = await store.check_health(NOW)
    assert not troubles(found)
    assert {finding.check for finding in found} == set(health_checks.CHECKS)


async def test_a_transaction_that_holds_back_vacuum_is_named_by_pid(
    store: PostgresStore, migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_checks, "LONG_S", 0.0)
    url = f"{migrated_postgres_url}?application_name=nightly%20dump"
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT FROM rota.queued")
        pid = connection.info.backend_pid
        told = troubles(of(await store.check_health(NOW), "long transactions"))
        assert len(told) == 1
        assert f"pid {pid} (user rota, application nightly dump)" in told[0].text
        assert told[0].remedy is not None and f"pg_terminate_backend({pid})" in told[0].remedy
        connection.rollback()
    assert not troubles(of(await store.check_health(NOW), "long transactions"))


async def test_connections_of_rota_that_are_not_used_are_counted(
    store: PostgresStore, migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_checks, "UNUSED_S", 0.0)
    monkeypatch.setattr(health_checks, "MANY_UNUSED", 2.5 / 197)  # of the test server's connections
    assert not troubles(of(await store.check_health(NOW), "connections"))
    forgotten = [psycopg.connect(f"{migrated_postgres_url}?application_name=rota") for _ in range(3)]
    (told,) = troubles(of(await store.check_health(NOW), "connections"))
    assert "4 of them by rota, of which 3 have been idle" in told.text
    for connection in forgotten:
        connection.close()


async def test_a_missing_index_comes_with_the_statement_that_makes_it(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("DROP INDEX rota.queued_due")
        (told,) = troubles(of(await store.check_health(NOW), "indexes"))
        assert "queued_due" in told.text and told.remedy is not None
        connection.execute(told.remedy.encode())
    assert not troubles(of(await store.check_health(NOW), "indexes"))


async def test_an_invalid_index_is_found(store: PostgresStore, migrated_postgres_url: str) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO rota.documents VALUES ('a', 'x', 1, now(), '{}'), ('a', 'y', 1, now(), '{}')"
        )
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("CREATE UNIQUE INDEX CONCURRENTLY twice ON rota.documents (kind)")
        (told,) = troubles(of(await store.check_health(NOW), "indexes"))
        assert "rota.twice is invalid" in told.text
        assert told.remedy == "REINDEX INDEX CONCURRENTLY rota.twice;"


async def test_dead_rows_and_bloat_are_judged_by_table() -> None:
    many = health_checks.MANY_DEAD
    for live, dead, indexes, level in (
        (10, 5, 0, "ok"),
        (10, many, 0, "warning"),
        (2 * many, many, 0, "ok"),
        (10, 0, health_checks.LARGE_INDEXES, "warning"),
        (10**6, 0, 200 * 10**6, "ok"),
    ):
        told = health_checks._table("queued", live, dead, None, indexes, "1 MB")
        assert (told.level, told.remedy is None) == (level, level == "ok"), told
        assert "last vacuum never" in told.text


async def test_a_schema_behind_is_a_problem_and_the_rest_is_still_looked_at(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    found = await store.check_health(NOW)
    (told,) = of(found, "schema")
    assert (told.level, told.remedy) == ("problem", "run `rota migrate`")
    assert {finding.check for finding in found} == set(health_checks.CHECKS) - {"dead rows"}
    assert of(found, "wake-ups")[0].level == "ok"
    await store.close()


async def test_jobs_in_the_default_partition_are_reported(store: PostgresStore) -> None:
    job = await running(store)
    await settle(store, [change(job, State.SUCCEEDED)], at(86_400 * 3650))
    told = troubles(of(await store.check_health(NOW), "history"))
    assert len(told) == 1 and "holds 1 finished jobs" in told[0].text
    assert len(troubles(of(await store.check_health(T0), "history"))) == 2  # by then there are no days left


async def test_a_role_that_may_see_little_is_reported(migrated_postgres_url: str) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN CREATE ROLE stranger LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
    store = PostgresStore(migrated_postgres_url.replace("//rota@", "//stranger@"))
    found = await store.check_health(NOW)
    assert "permission denied" in of(found, "schema")[0].text
    assert "permission denied" in of(found, "history")[0].text
    (told,) = of(found, "long transactions")
    assert told.remedy == 'GRANT pg_read_all_stats TO "stranger";'
    assert troubles(found)
    await store.close()


async def test_a_server_that_is_away_is_an_error_not_a_finding() -> None:
    store = PostgresStore("postgresql://127.0.0.1:1/shop")
    with pytest.raises(StoreUnavailable):
        await store.check_health(NOW)
    await store.close()


# --- the way to the server -----------------------------------------------------------------------


async def test_a_listener_that_receives_nothing_is_found(
    migrated_postgres_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Notifications do not leave their database: a listener in another one receives none.
    monkeypatch.setattr(connection_probes, "PROBE_WITHIN_S", 0.3)
    store = PostgresStore(f"{migrated_postgres_url}?listen={quote(postgres_url, safe='')}")
    (told,) = of(await store.check_health(NOW), "wake-ups")
    assert told.level == "warning" and told.remedy is not None and "?listen=URL" in told.remedy
    await store.close()


async def test_a_listener_that_cannot_connect_is_a_problem_and_no_listener_is_none(
    migrated_postgres_url: str,
) -> None:
    for listen, level in (("postgresql%3A//ann%3Asecret%40127.0.0.1%3A1/shop", "problem"), ("off", "ok")):
        store = PostgresStore(f"{migrated_postgres_url}?listen={listen}")
        (told,) = of(await store.check_health(NOW), "wake-ups")
        assert told.level == level and "secret" not in told.text
        await store.close()


@pytest.mark.parametrize(
    ("url", "levels"),
    [
        ("postgresql:///shop", ["ok"]),
        ("postgresql://localhost/shop", ["ok"]),
        ("postgresql://127.0.0.1,[::1]/shop", ["ok"]),
        ("postgresql://db.example/shop?sslmode=verify-full", ["ok"]),
        ("postgresql://db.example/shop", ["warning"]),
        ("postgresql://db.example/shop?sslmode=require", ["warning"]),
        ("postgresql://localhost,10.0.0.7/shop?sslmode=verify-ca", ["warning"]),
        ("postgresql://localhost/shop?listen=postgresql%3A//ann%3Asecret%40db.example/shop", ["warning"]),
        ("postgresql://db.example/shop?listen=postgresql%3A//db2.example/shop", ["warning", "warning"]),
    ],
)
def test_a_server_elsewhere_must_be_verified(
    url: str, levels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGSSLMODE", raising=False)
    monkeypatch.delenv("PGHOST", raising=False)
    found = connection_probes.encryption(parse(url))
    assert [finding.level for finding in found] == levels
    assert not any("secret" in finding.text for finding in found)


def test_encryption_settings_of_the_environment_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    assert [one.level for one in connection_probes.encryption(parse("postgresql://db.example/shop"))] == [
        "ok"
    ]
