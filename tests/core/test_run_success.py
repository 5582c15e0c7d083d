"""Whether a run succeeded, and what counts as a report of failure."""

from __future__ import annotations

import pytest

from rota.core.schedules.run_success import reported_failure, run_success
from rota.model import State


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ('{"success":false,"message":"no rows"}', "no rows"),
        ('{"success":false}', 'the task returned "success": false'),
        ('{"success":false,"message":7}', 'the task returned "success": false'),
        ('{"success":true,"message":"fine"}', None),
        ('{"success":null}', None),
        ('{"success":0}', None),
        ('{"success":"false"}', None),
        ('{"nested":{"success":false}}', None),
        ('[{"success":false}]', None),
        ("false", None),
        ("null", None),
    ],
)
def test_only_an_object_whose_success_is_false_reports_a_failure(output: str, message: str | None) -> None:
    assert reported_failure(output) == message


def test_a_run_has_succeeded_or_failed_as_its_job_has() -> None:
    assert {state: run_success(state) for state in State} == {
        State.WAITING: None,
        State.QUEUED: None,
        State.RUNNING: None,
        State.SUCCEEDED: True,
        State.FAILED: False,
        State.CANCELLED: None,
    }
