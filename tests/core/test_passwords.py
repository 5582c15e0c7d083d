"""Passwords of store URLs are never shown, whatever characters they have."""

from __future__ import annotations

import string
import traceback
from itertools import product
from urllib.parse import quote

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota import ConfigError, Rota
from rota.config.passwords import without_password

CANARY = "canary-7c1e"


@examples()
@given(st.text(alphabet=string.printable + "äß€", max_size=12))
def test_no_character_of_a_password_is_shown_wherever_it_ends(odd: str) -> None:
    for before, after in product((odd, ""), repeat=2):
        password = f"{before}{CANARY}{after}"
        for url in (
            f"postgresql://shop:{password}@db/shop",
            f"postgresql://shop:{quote(password)}@db/shop",
            f"host=db password={password} dbname=shop",
            f"postgresql://db/shop?password={password}",
        ):
            assert CANARY not in without_password(url), url
            try:
                shown = repr(Rota(url))
            except ConfigError as error:
                shown = "".join(traceback.format_exception(error, limit=0))
            assert CANARY not in shown, url


@pytest.mark.parametrize(
    "rest",
    [
        ";password={}",
        "#password={}",
        "?sslmode=require;password={}",
        "?options=-c%20password%3D{}",
        "?listen=host%3Ddb%20password%3D{}",
        "?pass%77ord=a@{}",
    ],
)
def test_password_that_stands_where_none_belongs_is_not_shown(rest: str) -> None:
    shown = without_password(f"postgresql://db/shop{rest.format(CANARY)}")
    assert CANARY not in shown and shown.startswith("postgresql://")
