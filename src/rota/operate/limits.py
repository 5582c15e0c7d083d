"""Actions on limits: what may run at once and how fast. ``app.limits`` stores and audits them.

A tenant sees the limit of its own, ``tenant:NAME``, and changes none: it is what the tenant is granted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ..core.jobs.limits import is_family, limit_name
from ..errors import NotFound
from ..model import Job, JobFilter, Page, PageRequest, Scope, State
from .actions import ActionGroup, requires
from .known_names import warning_of
from .requests import PutLimitRequest
from .views import LimitView, limit_view, with_holders

MOST_HOLDERS = 20


class LimitActions(ActionGroup):
    """List, show, set and drop limits."""

    subject = "limit"

    @requires("read")
    async def list(self) -> Page[LimitView]:
        """List limits and what is in use of each, by name. A tenant sees its own."""
        own = self.operations.actor.tenant
        if own is None:
            return Page(items=[limit_view(held) for held in await self.services.limits.list()])
        try:
            return Page(items=[limit_view(await self.services.limits.get(f"tenant:{own}"))])
        except NotFound:
            return Page(items=[])

    @requires("read")
    async def show(self, name: str) -> LimitView:
        """Show a limit, what is in use of it, and the jobs that hold it; also for one key of a family."""
        name = limit_name(name)
        self._require_visible(name)
        view = limit_view(await self.services.limits.get(name))
        return with_holders(view, await self._holders(name))

    @requires("operate.shared")
    async def set(self, name: str, request: PutLimitRequest) -> LimitView:
        """Create or replace a limit; it is in force at once."""
        held = await self.services.limits.set(
            name, running=request.running, rate=request.rate, burst=request.burst, strict=request.strict
        )
        return replace(limit_view(held), warning=await self._warning(held.name))

    @requires("operate.shared")
    async def drop(self, name: str) -> None:
        """Delete the limit set at run time. The one that the code declares holds again."""
        await self.services.limits.drop(name)

    def _require_visible(self, name: str) -> None:
        own = self.operations.actor.tenant
        if own is not None and name != f"tenant:{own}":
            raise NotFound(f"there is no limit {name!r}")

    async def _holders(self, name: str) -> Sequence[Job]:
        if is_family(name):
            return []
        scope, _, subject = name.partition(":")
        given: dict[str, Any] = {"concurrency_key" if scope == "key" else scope: subject}
        where = JobFilter(states=(State.RUNNING,), **given)
        page = PageRequest(limit=MOST_HOLDERS, brief=True, newest_first=False)
        return (await (await self.operations.store()).jobs(where, page)).items

    async def _warning(self, name: str) -> str | None:
        scope, _, subject = name.partition(":")
        scopes: dict[str, Scope] = {"queue": "queue", "task": "task", "tenant": "tenant"}
        if scope not in scopes:
            return None
        return await warning_of(self.services, scopes[scope], subject, "limit")
