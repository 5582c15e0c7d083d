"""Failures that a benchmark run survives."""

from __future__ import annotations


class MeasurementFailed(Exception):
    """No result: a job was lost or ran twice, a process died, or time ran out."""


class PeerUnavailable(Exception):
    """A peer that cannot run on this machine. The run reports the reason and continues with the others."""
