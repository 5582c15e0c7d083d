"""Which schedule an actor means by an id or a name. No other module decides what it may see of them."""

from __future__ import annotations

from ..core.schedules.names import DEFAULT, key_of, split_name
from ..errors import InvalidSchedule, NotFound
from ..model import PageRequest, Schedule, ScheduleFilter
from .actions import ActionContext

MOST_NAMED = 5  # tenants, where several have the name


async def visible_schedule(context: ActionContext, id: str, tenant: str | None) -> Schedule:
    """The schedule by its id, full name or name; NotFound also if it is not the actor's to see."""
    store, own = await context.store(), context.tenant(tenant)
    by_id = await store.schedules(ScheduleFilter(ids=(id,), tenant=own), PageRequest(limit=1))
    if by_id.items:
        return by_id.items[0]
    full, named = await by_full_name(context, id, tenant), await _named(context, id, own)
    if full is not None and (tenant is None or not named):  # as lists print it
        return full
    if not named:
        raise NotFound(await _missing(context, id, own))
    if len(named) == 1 or named[0].tenant == DEFAULT:
        return named[0]
    names = ", ".join(key_of(one) for one in named)
    raise InvalidSchedule(f"several tenants have a schedule named {id!r}: give the tenant ({names})")


async def by_full_name(context: ActionContext, text: str, tenant: str | None) -> Schedule | None:
    """The schedule that lists print like this, ``acme/invoice``, if the actor may see it."""
    split = split_name(text)
    if split is None or not context.sees(split[0]) or tenant not in (None, split[0]):
        return None
    where = ScheduleFilter(name=split[1], tenant=split[0])
    page = await (await context.store()).schedules(where, PageRequest(limit=1))
    return page.items[0] if page.items else None


async def _named(context: ActionContext, name: str, tenant: str | None) -> list[Schedule]:
    """By tenant, the default one first if they are many."""
    store, found = await context.store(), list[Schedule]()
    if tenant is None:
        default = ScheduleFilter(name=name, tenant=DEFAULT)
        found += (await store.schedules(default, PageRequest(limit=1))).items
    others = await store.schedules(ScheduleFilter(name=name, tenant=tenant), PageRequest(limit=MOST_NAMED))
    return found + [one for one in others.items if one.id not in {each.id for each in found}]


async def _missing(context: ActionContext, name: str, tenant: str | None) -> str:
    """An actor for all tenants learns who has it."""
    if tenant is None:
        return f"there is no schedule {name!r}"
    if context.actor.tenant is None and (others := await _named(context, name, None)):
        names = " or ".join(key_of(one) for one in others)
        return f"tenant {tenant!r} has no schedule {name!r}; did you mean {names}?"
    return f"tenant {tenant!r} has no schedule {name!r}"
