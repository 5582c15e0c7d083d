"""Which schedule an actor means by an id or a name. No other module decides what it may see of them."""

from __future__ import annotations

from ..errors import InvalidSchedule, NotFound
from ..model import PageRequest, Schedule, ScheduleFilter
from .actions import ActionContext


async def visible_schedule(context: ActionContext, id: str, tenant: str | None) -> Schedule:
    """The schedule by its id or name; NotFound also if it belongs to another tenant than the actor."""
    store, own = await context.store(), context.tenant(tenant)
    by_id = await store.schedules(ScheduleFilter(ids=(id,), tenant=own), PageRequest(limit=1))
    if by_id.items:
        return by_id.items[0]
    named = (await store.schedules(ScheduleFilter(name=id, tenant=own), PageRequest(limit=2))).items
    if not named:
        raise NotFound(f"there is no schedule {id!r}")
    if len(named) > 1:
        default = next((one for one in named if one.tenant == "default"), None)
        if default is None:
            raise InvalidSchedule(f"several tenants have a schedule named {id!r}: give the tenant")
        return default
    return named[0]
