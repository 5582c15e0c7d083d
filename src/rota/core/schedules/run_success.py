"""Whether a run of a schedule succeeded: decided here and nowhere else. Pure.

A task on a schedule may report its own failure by returning ``{"success": false, "message": …}``. Its job
then ends as failed, so a run has succeeded if and only if its job has, in every list, count and event.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...model import State


class _Report(msgspec.Struct):
    success: Any = None
    message: Any = None


_report = msgspec.json.Decoder(_Report).decode


def run_success(state: State) -> bool | None:
    """True or False; None: not finished, or cancelled."""
    return {State.SUCCEEDED: True, State.FAILED: False}.get(state)


def reported_failure(output_json: str) -> str | None:
    """The message of a run whose output says that it failed; None if it says no such thing."""
    try:
        report = _report(output_json)
    except msgspec.DecodeError:  # not an object
        return None
    if report.success is not False:
        return None
    if isinstance(report.message, str) and report.message:
        return report.message
    return 'the task returned "success": false'
