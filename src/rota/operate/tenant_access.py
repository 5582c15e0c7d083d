"""``app.tenants``: what each tenant may, and what it has, for programs. The actions are ``TenantActions``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Unpack

from ..core.tenants import TenantOptions, check_names
from ..runtime.portal import Portal
from ..runtime.runtime import Runtime
from ..runtime.sync_twins import call_sync, sync_twin
from .operations import Operations
from .requests import PutTenantRequest, TenantsRequest
from .views import TenantView

PAGE = 500


class Tenants:
    """Set, read and drop the rules of tenants. Holds nothing: the store does."""

    def __init__(self, runtime: Runtime, operations: Callable[[], Operations]) -> None:
        self._runtime = runtime
        self._operations = operations

    @property
    def portal(self) -> Portal:
        """The event loop for callers that are not async."""
        return self._runtime.portal

    async def set(self, name: str, **given: Unpack[TenantOptions]) -> TenantView:
        """Change what a tenant may. What is not given stays as it is, None clears it."""
        check_names(given)
        return await self._operations().tenants.put(name, PutTenantRequest(**given))

    set_sync = sync_twin(set)

    async def get(self, name: str) -> TenantView:
        """The tenant as it is now; NotFound if it has no jobs, schedules, rule, limit or pause."""
        return await self._operations().tenants.show(name)

    get_sync = sync_twin(get)

    async def list(self) -> AsyncIterator[TenantView]:
        """Every tenant that has live jobs, schedules, a rule or a pause, by name; read page by page."""
        cursor: str | None = None
        while True:
            page = await self._operations().tenants.list(TenantsRequest(limit=PAGE, cursor=cursor))
            for tenant in page.items:
                yield tenant
            if (cursor := page.next) is None:
                return

    def list_sync(self) -> Iterator[TenantView]:
        """``list`` for code that is not async."""
        cursor: str | None = None
        while True:
            request = TenantsRequest(limit=PAGE, cursor=cursor)
            page = call_sync(self.portal, "list", self._operations().tenants.list, request)
            yield from page.items
            if (cursor := page.next) is None:
                return

    async def drop(self, name: str) -> None:
        """Delete a tenant's rule: weight 1, no quotas, no budget. NotFound if it has none."""
        await self._operations().tenants.drop(name)

    drop_sync = sync_twin(drop)
