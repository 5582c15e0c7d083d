"""Ids: text in the shape of UUIDv7 that sorts by time and never repeats."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rota.clock import Ids
from rota.core.ids import is_id, uuid7

NOW = datetime(2030, 1, 1, tzinfo=UTC)
milliseconds = st.integers(0, 2**48 - 1)
bits = st.integers(0, 2**74 - 1)


@given(milliseconds, bits)
def test_an_id_is_a_uuid_of_version_seven(ms: int, random: int) -> None:
    parsed = uuid.UUID(uuid7(ms, random))
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == ms
    assert is_id(str(parsed))


@given(milliseconds, bits, milliseconds, bits)
def test_ids_sort_by_time_and_then_by_their_bits(ms: int, random: int, other_ms: int, other: int) -> None:
    assert (uuid7(ms, random) < uuid7(other_ms, other)) is ((ms, random) < (other_ms, other))


def test_ids_of_one_process_only_grow_even_when_the_clock_steps_back() -> None:
    ids = Ids()
    instants = [NOW + timedelta(milliseconds=step) for step in (0, 0, 5, 5, -1000, 3, 6, 6, -86_400_000)]
    made = [ids.new(now) for now in instants for _ in range(500)]
    assert made == sorted(set(made))


def test_what_is_not_an_id_is_told_apart() -> None:
    good = uuid7(1, 1)
    for text in (
        "",
        "x",
        good.upper(),
        good[:-1],
        good + "0",
        good.replace("-", ""),
        f" {good}",
        f"{good}\n",
    ):
        assert is_id(text) is (text == good)
