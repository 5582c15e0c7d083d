"""Failures that differ in numbers and quoted names alone have one fingerprint; others have their own."""

from __future__ import annotations

from uuid import UUID

import pytest
from effort import LONG, examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.fingerprint import LONGEST, fingerprint, folded

words = st.text(
    st.characters(categories=("Ll", "Lu", "Po", "Zs"), exclude_characters="'\"`“”«»"), max_size=30
)
numbers = st.one_of(
    st.integers().map(str),
    st.floats().filter(lambda n: n == n and abs(n) != float("inf")).map(str),
    st.integers(0).map(hex),
    st.integers(2**31).map("{:x}".format),
    st.datetimes().map(lambda at: at.isoformat()),
    st.uuids().map(str),
)


@examples()
@given(words, numbers, numbers, words)
def test_numbers_never_split_a_group(before: str, one: str, other: str, after: str) -> None:
    assert folded(f"{before} {one} {after}") == folded(f"{before} {other} {after}")


@examples()
@given(words, st.text(st.characters(categories=("Nd",)), min_size=1), st.text("0123456789", min_size=1))
def test_digits_inside_a_word_never_split_a_group(word: str, one: str, other: str) -> None:
    assert folded(f"{word}{one}{word}") == folded(f"{word}{other}{word}")


@examples()
@given(words, st.sampled_from("'\"`"), st.text(), st.text(), words)
def test_quoted_names_never_split_a_group(before: str, mark: str, one: str, other: str, after: str) -> None:
    first, second = (f"{before} {mark}{name.replace(mark, '')}{mark} {after}" for name in (one, other))
    assert folded(first) == folded(second)


@examples()
@given(st.text(), st.text(), st.text(), st.text())
def test_types_and_tasks_are_never_put_together(task: str, one: str, other: str, message: str) -> None:
    same = fingerprint(task, one, message) == fingerprint(task, other, message)
    assert same == (one == other)
    assert (fingerprint(one, task, message) == fingerprint(other, task, message)) == (one == other)


@examples()
@given(st.text(max_size=2000))
def test_any_text_has_a_short_fingerprint(text: str) -> None:
    assert len(fingerprint("t", text, text)) == 16
    assert len(folded(text)) <= LONGEST


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("connection to 10.0.0.7:5432 refused", "connection to # refused"),
        ("'vat_rate'", "…"),
        ("order_42 doesn't know the user's 'Ada'", "order_# doesn't know the user's …"),
        ("object at 0x7f3a2b1c9d90", "object at #"),
        ("commit deadbeef is gone", "commit # is gone"),
        ("no decade was added", "no decade was added"),
        (f"job {UUID(int=2**127)} is lost", "job # is lost"),
        ("took -1.5e-07 s at 2030-01-31T08:00:00+00:00", "took # s at #"),
        ("two\n  lines", "two lines"),
        ("", ""),
    ],
)
def test_a_message_keeps_its_words(message: str, told: str) -> None:
    assert folded(message) == told


@pytest.mark.parametrize("part", ["'a ", " 'a", "a", "1", "f", "#-", "\"'`", "-1", "a1"])
def test_a_hostile_message_is_folded_in_bounded_time(part: str) -> None:
    assert len(folded(part * ((1_000_000 if LONG else 50_000) // len(part)))) <= LONGEST
