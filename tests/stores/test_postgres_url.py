"""PostgreSQL: what URLs mean, in libpq's words and in those of other drivers."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from rota import ConfigError
from rota.store.open import open_store
from rota.store.postgres.store import PostgresStore
from rota.store.postgres.url import parse
from rota.store.sqlite.store import SqliteStore


@pytest.mark.parametrize(
    "scheme",
    [
        "postgresql",
        "postgres",
        "postgresql+asyncpg",
        "postgresql+psycopg",
        "postgresql+psycopg2",
        "postgresql+psycopg_async",
        "postgres+asyncpg",
        "PostgreSQL+AsyncPG",
    ],
)
def test_the_driver_in_a_url_does_not_matter(scheme: str) -> None:
    store = open_store(f"{scheme}://ann:secret@db:5433/shop")
    assert isinstance(store, PostgresStore)
    assert store.url in ("postgresql://ann:***@db:5433/shop", "postgres://ann:***@db:5433/shop")


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+aiosqlite", "sqlite+pysqlite"])
def test_the_driver_in_a_url_of_sqlite_does_not_matter(scheme: str) -> None:
    store = open_store(f"{scheme}:///shop.db?check_same_thread=false")
    assert isinstance(store, SqliteStore)
    assert store.url.startswith("sqlite:///shop.db")


@pytest.mark.parametrize("scheme", ["postgresql+nothing", "sqlite+pysqlcipher"])
def test_an_unknown_driver_is_refused_with_the_plain_scheme(scheme: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '{scheme.partition('+')[0]}'"):
        open_store(f"{scheme}:///shop")


@pytest.mark.parametrize(
    ("query", "meaning"),
    [
        ("sslmode=verify-full", {"sslmode": "verify-full"}),
        ("ssl=require", {"sslmode": "require"}),
        ("ssl=true", {"sslmode": "require"}),
        ("ssl=False", {"sslmode": "disable"}),
        ("timeout=7&command_timeout=60&prepared_statement_cache_size=0", {"connect_timeout": "7"}),
        ("host=a:5432&host=b:5433", {"host": "a,b", "port": "5432,5433"}),
        ("host=/var/run/postgresql", {"host": "/var/run/postgresql"}),
    ],
)
def test_options_of_other_drivers_are_understood(query: str, meaning: dict[str, str]) -> None:
    found = conninfo_to_dict(parse(f"postgresql:///shop?{query}").conninfo)
    assert {name: value for name, value in found.items() if name != "dbname"} == meaning


def test_an_option_that_nobody_knows_is_named_and_the_password_is_not() -> None:
    for query, said in [("schema=public", "no option 'schema'"), ("ssl=maybe", "sslmode=")]:
        with pytest.raises(ConfigError, match=said) as caught:
            parse(f"postgresql://ann:hunter2@db/shop?{query}")
        assert "hunter2" not in str(caught.value)
