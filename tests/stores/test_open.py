"""Which store a URL names, and what is said when it names none."""

from __future__ import annotations

import sys

import pytest

from rota.errors import ConfigError, MissingDriver
from rota.store.open import open_store


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgre://u@h/d", "did you mean 'postgres'"),
        ("postgresql+rust://u@h/d", "did you mean 'postgresql'"),
        ("sqllite:///x.db", "did you mean 'sqlite'"),
        ("zzz://h", "unknown store scheme 'zzz'; this version knows sqlite"),
        ("mongodb://h/d", "no store for MongoDB"),
        ("mongodb+srv://h/d", "no store for MongoDB"),
        ("redis://h/0", "no store for Redis"),
        ("mysql://h/d", "no store for MySQL"),
        ("shop.db", "not a store URL"),
        ("", "not a store URL"),
        ("://", "unknown store scheme"),
    ],
)
def test_a_url_that_names_no_store_is_explained(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        open_store(url)
    assert "sqlite:///" in str(caught.value)


def test_no_error_shows_a_password() -> None:
    for url in (
        "mysql://ann:secret@h/d",
        "zzz://ann:secret@h/d?password=secret",
        "redis://:secret@h",
        "z://a:secret@[h",
    ):
        with pytest.raises(ConfigError) as caught:
            open_store(url)
        assert "secret" not in str(caught.value)


def test_a_missing_driver_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDriver, match=r'pip install "rota\[postgres\]"') as caught:
        open_store("postgresql://ann:secret@h/d")
    assert "secret" not in str(caught.value)
