"""The execution log reports exactly which jobs ran, and its check finds every error."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from bench.errors import MeasurementFailed
from bench.execution_log import ExecutionLog, check, first_starts


def write(execution_log: ExecutionLog, name: str, *records: tuple[int, int], capacity: int = 8) -> None:
    text = b"".join(struct.pack("<qq", number + 1, at) for number, at in records)
    (execution_log.folder / f"{name}.log").write_bytes(text.ljust(capacity * 16, b"\0"))


def test_count_ignores_unused_space(tmp_path: Path) -> None:
    execution_log = ExecutionLog(tmp_path, 8)
    assert execution_log.count() == 0
    for count in range(9):
        write(execution_log, "1", *((i, 100 + i) for i in range(count)))
        assert execution_log.count() == count


def test_records_of_all_processes_are_merged_by_time(tmp_path: Path) -> None:
    execution_log = ExecutionLog(tmp_path, 8)
    write(execution_log, "1", (0, 10), (2, 30))
    write(execution_log, "2", (1, 20), (0, 40), capacity=2)
    assert execution_log.records() == [(0, 10), (1, 20), (2, 30), (0, 40)]
    assert first_starts(execution_log.records()) == {0: 10, 1: 20, 2: 30}


def test_new_log_removes_old_records(tmp_path: Path) -> None:
    write(ExecutionLog(tmp_path, 8), "1", (0, 10))
    assert ExecutionLog(tmp_path, 8).count() == 0


@pytest.mark.parametrize(
    ("numbers", "error"),
    [((0, 1), "1 did not run"), ((0, 1, 2, 1), "1 ran too often"), ((0, 1, 2, 7), "1 unknown")],
)
def test_check_reports_missing_repeated_and_unknown_jobs(numbers: tuple[int, ...], error: str) -> None:
    with pytest.raises(MeasurementFailed, match=error):
        check([(number, 0) for number in numbers], 3)


def test_check_accepts_an_expected_repetition() -> None:
    check([(0, 1), (1, 2), (0, 3)], 2, lambda i: 2 if i == 0 else 1)
    with pytest.raises(MeasurementFailed):
        check([(0, 1), (1, 2)], 2, lambda i: 2 if i == 0 else 1)
