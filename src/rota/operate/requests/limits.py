"""Requests of the actions on limits."""

from __future__ import annotations

from .fields import ActionRequest, Text


class PutLimitRequest(ActionRequest, frozen=True, kw_only=True):
    """The whole limit: what is left out is not limited. ``core/jobs/limits.py`` checks the values."""

    running: int | None = None  # jobs at any instant
    rate: Text | None = None  # units begun per time, such as "100/m"
    burst: int | None = None  # units that may be begun at once
    strict: bool = False  # of keys: a job that waits for its retry holds up the others of its key
