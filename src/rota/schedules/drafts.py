"""Schedules before they are stored: checked against the tasks, and with their next fire computed.

Reads calendars from the store; never writes a schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.schedules import draft, firing, restarts
from ..core.schedules.calendars import Calendar
from ..errors import NotFound
from ..model import Schedule
from ..runtime.runtime import Runtime
from ..store.protocol import StoreWithin
from ..tasks.registry import Registry
from .calendars import load


class ScheduleDrafts:
    """Builds the schedules that the other services of this package write."""

    def __init__(self, runtime: Runtime, registry: Registry) -> None:
        self._runtime = runtime
        self._registry = registry

    def build(self, name: str, tenant: str, given: Mapping[str, Any]) -> Schedule:
        """A checked schedule that is not stored yet."""
        now = self._runtime.clock.now()
        return draft.new(self._runtime.ids.new(now), name, tenant, given, now, self._encode)

    def change(self, before: Schedule, given: Mapping[str, Any]) -> Schedule:
        """The schedule with the given values, everything checked."""
        return draft.fill(before, given, self._encode)

    async def start(self, store: StoreWithin, schedule: Schedule) -> Schedule:
        """The schedule with its next fire counted from now."""
        return firing.start(schedule, self._runtime.clock.now(), await self.calendar(store, schedule))

    async def restart(self, store: StoreWithin, before: Schedule | None, after: Schedule) -> Schedule:
        """The same for a program that starts again: a run that is due earlier is not taken away."""
        started = await self.start(store, after)
        return restarts.keep_pending(before, started, self._runtime.clock.now())

    async def calendar(self, store: StoreWithin, schedule: Schedule) -> Calendar | None:
        """The calendar that the schedule names; NotFound if there is none of that name."""
        if schedule.calendar is None:
            return None
        calendar = await load(store, schedule.calendar)
        if calendar is None:
            raise NotFound(f"there is no calendar named {schedule.calendar!r}: import it first")
        return calendar

    def _encode(self, task: str, payload: Mapping[str, Any]) -> str:
        return self._registry.encode(task, dict(payload), self._runtime.settings.max_payload_bytes)
