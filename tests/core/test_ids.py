"""Ids: text in the shape of UUIDv7 that sorts by time and never repeats."""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime, timedelta
from random import Random as Chance

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.ids import LAST_GROUP, is_id, uuid7
from rota.runtime.clock import Ids

NOW = datetime(2030, 1, 1, tzinfo=UTC)
milliseconds = st.integers(0, 2**48 - 1)
bits = st.integers(0, 2**74 - 1)


@examples()
@given(milliseconds, bits)
def test_an_id_is_a_uuid_of_version_seven(ms: int, random: int) -> None:
    parsed = uuid.UUID(uuid7(ms, random))
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == ms
    assert is_id(str(parsed))


@pytest.mark.parametrize("bit", range(74))
def test_every_random_bit_is_in_the_id(bit: int) -> None:
    assert uuid7(0, 1 << bit) != uuid7(0, 0)
    assert is_id(uuid7(0, 1 << bit))


@examples()
@given(milliseconds, bits, milliseconds, bits)
def test_ids_sort_by_time_and_then_by_their_bits(ms: int, random: int, other_ms: int, other: int) -> None:
    assert (uuid7(ms, random) < uuid7(other_ms, other)) is ((ms, random) < (other_ms, other))


def test_ids_of_one_process_only_grow_even_when_the_clock_steps_back() -> None:
    ids = Ids()
    instants = [NOW + timedelta(milliseconds=step) for step in (0, 0, 5, 5, -1000, 3, 6, 6, -86_400_000)]
    made = [ids.new(now) for now in instants for _ in range(500)]
    assert made == sorted(set(made))


def test_runs_and_single_ids_of_one_process_only_grow() -> None:
    ids = Ids()
    counts = (1, 3, 0, 1000, 1, 2, 50)
    made = [one for count in counts for one in (*ids.run(NOW, count), ids.new(NOW))]
    assert len(made) == sum(counts) + len(counts)
    assert made == sorted(set(made))
    assert all(is_id(one) and uuid.UUID(one).version == 7 for one in made)


@examples()
@given(st.integers(1, 50))
def test_a_run_counts_on_from_its_first_id(count: int) -> None:
    made = [uuid.UUID(one).int for one in Ids().run(NOW, count)]
    assert made == list(range(made[0], made[0] + count))


def test_a_forked_process_makes_ids_of_its_own() -> None:
    ids = Ids()
    ids.new(NOW)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, "".join(ids.run(NOW, 10)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 10_000).decode()
    os.close(reading)
    os.close(writing)
    assert len(theirs) == 360
    assert not [one for one in ids.run(NOW, 10) if one in theirs]


def test_a_run_that_does_not_fit_begins_anew_above(monkeypatch: pytest.MonkeyPatch) -> None:
    near_the_end = (5 << 48) | (LAST_GROUP - 1)
    monkeypatch.setattr(Chance, "getrandbits", lambda self, count: near_the_end)
    made = Ids().run(NOW, 4)
    ms = int(NOW.timestamp() * 1000)
    assert made == [uuid7(ms, (6 << 48) + step) for step in range(4)]


def test_when_the_bits_of_a_millisecond_are_used_up_the_next_one_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = Ids()
    monkeypatch.setattr(Chance, "getrandbits", lambda self, count: 2**74 - 1 if count == 73 else 7)
    made = [ids.new(NOW), *ids.run(NOW, 3)]
    ms = int(NOW.timestamp() * 1000)
    assert made == [uuid7(ms, 2**74 - 1), *(uuid7(ms + 1, (7 << 48) + step) for step in range(3))]


def test_a_string_that_is_not_an_id_is_recognised() -> None:
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
