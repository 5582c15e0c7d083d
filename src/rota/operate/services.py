"""``Services``: what admin actions work with. Only what they use; never the app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..config import Settings
from ..runtime.clock import Clock, Ids
from ..runtime.runtime import Runtime
from ..runtime.stores import StorePerLoop
from ..schedules.calendars import Calendars
from ..schedules.manage import Schedules
from ..tasks.limits import AppLimits
from ..tasks.producer import Producer
from ..tasks.published import PublishedTasks


@dataclass(frozen=True, slots=True)
class Services:
    """The runtime and the services of one app that admin actions call."""

    runtime: Runtime
    producer: Producer
    published: PublishedTasks
    schedules: Schedules
    calendars: Calendars
    limits: AppLimits
    wake_scheduler: Callable[[], None]

    @property
    def clock(self) -> Clock:
        return self.runtime.clock

    @property
    def ids(self) -> Ids:
        return self.runtime.ids

    @property
    def settings(self) -> Settings:
        return self.runtime.settings

    @property
    def stores(self) -> StorePerLoop:
        return self.runtime.stores
