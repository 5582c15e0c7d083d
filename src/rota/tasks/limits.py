"""``app.limits``: what may run at once and how fast, by queue, task, tenant and key.

Owns how a rule is changed: by version, with its audit entry. Never decides what a claim may take: stores
read the rules themselves, so that one is in force as soon as it is written.
"""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec.structs import replace

from ..core.jobs.limits import check_rule, limit_name
from ..errors import NotFound, StoreError
from ..model import Held, Limit, LimitRule, LimitRules, Limits
from ..runtime.audit import audited
from ..runtime.portal import Portal
from ..runtime.runtime import Runtime
from ..runtime.sync_twins import sync_twin
from ..store.protocol import Store
from .registry import Registry

log = logging.getLogger("rota.limits")

TRIES = 20  # of a change that others get ahead of


class AppLimits:
    """Set, read and drop limits. A name is ``queue:NAME``, ``task:NAME``, ``tenant:NAME`` or ``key:NAME``;
    ``key:PREFIX*`` is a limit for each key that begins so."""

    def __init__(self, runtime: Runtime, registry: Registry) -> None:
        self._runtime, self._registry = runtime, registry

    @property
    def portal(self) -> Portal:
        """The event loop for callers that are not async."""
        return self._runtime.portal

    async def set(
        self,
        name: str,
        *,
        running: int | None = None,
        rate: str | None = None,
        burst: int | None = None,
        strict: bool = False,
    ) -> Held:
        """Replace the limit of this name; it is in force when this returns, and jobs that run already count.

        ``running``: how many at most at any instant. ``rate``: units begun per time, such as "100/m", of
        which ``burst`` may be begun at once. ``strict``, for keys: a job that waits for its retry holds
        up the others of its key. It wins over the limit that the code declares, until ``drop``.
        """
        limit = Limit(running=running, rate=rate, burst=burst, strict=strict)
        name = check_rule(name, limit)
        store = await self._runtime.stores.get()
        async with audited(self._runtime, "limit.set", f"limit:{name}", _tenant(name)) as draft:
            before = await self._change(store, name, lambda rule: replace(rule, chosen=limit))
            draft.before, draft.after = before.limit, limit
        return await self.get(name)

    set_sync = sync_twin(set)

    async def get(self, name: str) -> Held:
        """What is in use of a limit now; also of one key of a family. NotFound if nothing limits it."""
        name = limit_name(name)
        store = await self._runtime.stores.get()
        found = await store.survey(Limits(self._runtime.clock.store_now, (name,)))
        if not found:
            raise NotFound(f"there is no limit {name!r}{self._declared(name)}")
        return found[0]

    get_sync = sync_twin(get)

    async def list(self) -> builtins.list[Held]:
        """What is in use of every limit, by name; of the first 1,000 of them."""
        store = await self._runtime.stores.get()
        return builtins.list(await store.survey(Limits(self._runtime.clock.store_now)))

    list_sync = sync_twin(list)

    async def drop(self, name: str) -> Held | None:
        """Remove the limit set at run time; the one that the code declares holds again, and is returned."""
        name = limit_name(name)
        store = await self._runtime.stores.get()
        async with audited(self._runtime, "limit.drop", f"limit:{name}", _tenant(name)) as draft:
            before = await self._change(store, name, _without_chosen)
            draft.before, draft.after = before.chosen, before.declared
        return None if before.declared is None else await self.get(name)

    drop_sync = sync_twin(drop)

    def _declared(self, name: str) -> str:
        """Of a limit that the store does not have: that the code has it."""
        task = self._registry.get(name.removeprefix("task:")) if name.startswith("task:") else None
        if task is None or task.limit is None:
            return ""
        return " in the store yet: the code declares it, and the first worker that knows the task stores it"

    async def _change(self, store: Store, name: str, edit: Callable[[LimitRule], LimitRule]) -> LimitRule:
        """The rule as it was before the change."""
        for _ in range(TRIES):
            before = next(iter(await store.survey(LimitRules((name,)))), LimitRule(name=name))
            (version,) = await store.put_rules([edit(before)], self._runtime.clock.store_now)
            if version is not None:
                return before
        raise StoreError(f"limit {name!r} was changed by others all the time: try again")


async def declare_limits(store: Store, declared: Mapping[str, Limit | None], now: datetime | None) -> None:
    """Write what the code says about these names, where the store has it differently."""
    for _ in range(TRIES):
        stored = {rule.name: rule for rule in await store.survey(LimitRules(tuple(declared)))}
        rules = [
            replace(stored.get(name, LimitRule(name=name)), declared=limit)
            for name, limit in declared.items()
            if limit != (stored[name].declared if name in stored else None)
        ]
        if not rules or None not in await store.put_rules(rules, now):
            return
    log.warning("the limits of tasks could not be declared: others change them all the time")


def _without_chosen(rule: LimitRule) -> LimitRule:
    if rule.chosen is not None:
        return replace(rule, chosen=None)
    if rule.declared is not None:
        raise NotFound(
            f"limit {rule.name!r} was not set at run time: the code declares it, so change it there"
        )
    raise NotFound(f"there is no limit {rule.name!r}")


def _tenant(name: str) -> str | None:
    """The tenant whose audit log an entry belongs to."""
    scope, _, subject = name.partition(":")
    return subject if scope == "tenant" else None
