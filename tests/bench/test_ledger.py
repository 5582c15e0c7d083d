"""The ledger tells exactly what ran, and its check misses nothing."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from bench.errors import Failed
from bench.ledger import Ledger, check, first_starts


def write(ledger: Ledger, name: str, *records: tuple[int, int], room: int = 8) -> None:
    text = b"".join(struct.pack("<qq", number + 1, at) for number, at in records)
    (ledger.folder / f"{name}.log").write_bytes(text.ljust(room * 16, b"\0"))


def test_it_counts_what_is_written_and_not_the_room_that_is_left(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, 8)
    assert ledger.count() == 0
    for count in range(9):
        write(ledger, "1", *((i, 100 + i) for i in range(count)))
        assert ledger.count() == count


def test_it_merges_processes_by_time(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, 8)
    write(ledger, "1", (0, 10), (2, 30))
    write(ledger, "2", (1, 20), (0, 40), room=2)
    assert ledger.records() == [(0, 10), (1, 20), (2, 30), (0, 40)]
    assert first_starts(ledger.records()) == {0: 10, 1: 20, 2: 30}


def test_a_new_ledger_forgets_the_old_one(tmp_path: Path) -> None:
    write(Ledger(tmp_path, 8), "1", (0, 10))
    assert Ledger(tmp_path, 8).count() == 0


@pytest.mark.parametrize(
    ("numbers", "fault"),
    [((0, 1), "1 did not run"), ((0, 1, 2, 1), "1 ran too often"), ((0, 1, 2, 7), "1 unknown")],
)
def test_the_check_names_what_went_wrong(numbers: tuple[int, ...], fault: str) -> None:
    with pytest.raises(Failed, match=fault):
        check([(number, 0) for number in numbers], 3)


def test_the_check_knows_jobs_that_must_run_twice() -> None:
    check([(0, 1), (1, 2), (0, 3)], 2, lambda i: 2 if i == 0 else 1)
    with pytest.raises(Failed):
        check([(0, 1), (1, 2)], 2, lambda i: 2 if i == 0 else 1)
