"""``Runtime``: the few things that every service of one app needs, in one value.

Owns the settings in force, the clock, the ids, the hooks, the records of running services, the open
stores and the loop for callers that are not async. Must never know tasks, schedules, workers or the app:
a service that needs one of those is given it by name.
"""

from __future__ import annotations

from .. import config
from ..config import Settings
from .clock import Clock, Ids
from .events import Hooks
from .portal import Portal
from .service_records import ServiceRecords
from .stores import StorePerLoop


class Runtime:
    """Shared by the services of one app. Opens nothing until it is used."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or Clock()
        self.ids = Ids()
        self.hooks = Hooks()
        self.records = ServiceRecords()
        self.stores = StorePerLoop(settings.url, self.clock)
        self.portal = Portal(self.stores.close)

    def use_store(self, url: str) -> None:
        """Work on another store from now on. Close the one in use first."""
        self.settings = config.replaced(self.settings, url=url)
        self.stores = StorePerLoop(url, self.clock)
        self.portal = Portal(self.stores.close)
