"""Options of a job: when it is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota.core.jobs.options import Options, due, merge

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_job_is_due_after_its_delay_or_at_its_time() -> None:
    assert due(Options(), NOW) is None
    assert due(Options(delay=90), NOW) == NOW + timedelta(seconds=90)
    assert due(Options(delay=0), NOW) is None
    assert due(Options(run_at=NOW), NOW - timedelta(days=1)) == NOW


def test_a_due_time_is_replaced_as_a_whole() -> None:
    assert merge(Options(delay=90, priority=3), Options(run_at=NOW)) == Options(run_at=NOW, priority=3)
    assert merge(Options(run_at=NOW), Options(delay=5)) == Options(delay=5)
