"""The fixtures that tests of workers and schedulers share."""

from __future__ import annotations

from service_fixtures import app, clock, no_thread_is_left_over, until

__all__ = ["app", "clock", "no_thread_is_left_over", "until"]
