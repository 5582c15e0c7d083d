"""The order in which jobs of a queue begin: the most urgent first, then by due time, then by id."""

from __future__ import annotations

from datetime import datetime

from ...model import Job


def claim_order(job: Job) -> tuple[int, datetime, str]:
    return -job.priority, job.run_at, job.id
