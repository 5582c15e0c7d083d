"""Full names of schedules: no two schedules share one, and what is printed can be read again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.core.schedules.names import full_name, short_name, split_name

NAME = st.text("ab/%2F5. ", min_size=1, max_size=6)


def test_a_slash_or_percent_sign_in_a_tenant_is_escaped() -> None:
    assert full_name("acme", "eu/nightly") == "acme/eu/nightly"
    assert full_name("acme/eu", "nightly") == "acme%2Feu/nightly"
    assert full_name("acme%2Feu", "nightly") == "acme%252Feu/nightly"


def test_a_name_of_the_default_tenant_stands_alone_unless_it_has_a_slash() -> None:
    assert short_name("default", "nightly") == short_name(None, "nightly") == "nightly"
    assert short_name("default", "acme/nightly") == "default/acme/nightly"
    assert short_name("acme", "nightly") == "acme/nightly"


@given(NAME, NAME)
def test_a_full_name_can_be_read_again(tenant: str, name: str) -> None:
    assert split_name(full_name(tenant, name)) == (tenant, name)


def test_a_name_alone_is_no_full_name() -> None:
    assert [split_name(text) for text in ("nightly", "/nightly", "acme/", "/")] == [None] * 4
