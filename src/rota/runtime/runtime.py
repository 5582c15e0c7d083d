"""``Runtime``: the few things that every service of one app needs, in one value.

Owns the settings in force, the clock, the ids, the hooks, the records of running services, the open
stores, the rules of tenants and the loop for callers that are not async. Must never know tasks, schedules,
workers or the app: a service that needs one of those is given it by name.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import config
from ..config import Settings
from .clock import Clock, Ids
from .denied import DeniedRequests
from .events import Hooks
from .portal import Portal
from .service_records import ServiceRecords
from .stores import StorePerLoop
from .tenant_watch import TenantWatch


class Bound(NamedTuple):
    """What ties an app to one store."""

    settings: Settings
    clock: Clock
    stores: StorePerLoop
    tenants: TenantWatch


class Runtime:
    """Shared by the services of one app. Opens nothing until it is used."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or Clock()
        self.ids = Ids()
        self.hooks = Hooks()
        self.records = ServiceRecords()
        self.denied = DeniedRequests()
        self.stores = StorePerLoop(settings.url, self.clock)
        self.tenants = TenantWatch(self.clock)

    @property
    def portal(self) -> Portal:
        """The event loop for callers that are not async."""
        return self.stores.portal

    def use_store(self, url: str) -> None:
        """Work on another store from now on. Close the one in use first."""
        self.rebind(None, url=url)

    def rebind(self, clock: Clock | None, **given: Any) -> Bound:
        """Work with these settings, and this clock if one is given; what was in use, to ``restore`` it."""
        before = Bound(self.settings, self.clock, self.stores, self.tenants)
        self.settings = config.replaced(self.settings, **given)
        self.clock = clock or self.clock
        self.stores = StorePerLoop(self.settings.url, self.clock)
        self.tenants = TenantWatch(self.clock)
        return before

    def restore(self, before: Bound) -> None:
        """Use again what ``rebind`` returned. Close what is in use first."""
        self.settings, self.clock, self.stores, self.tenants = before
