"""Passwords of store URLs are never shown, whatever characters they have."""

from __future__ import annotations

import string
import traceback
from itertools import product
from urllib.parse import quote

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
