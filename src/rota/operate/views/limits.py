"""Views of limits."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...model import Held, Job, Limit
from .base import Timestamp, View


class DeclaredLimitView(View, frozen=True, kw_only=True):
    """The limit that the code declares, where one set at run time replaces it."""

    running: int | None
    rate: str | None
    burst: int | None
    strict: bool


class HolderView(View, frozen=True, kw_only=True):
    """A running job that counts under a limit."""

    id: str
    task: str
    queue: str
    tenant: str
    concurrency_key: str | None
    worker: str | None
    started_at: Timestamp | None


class LimitView(View, frozen=True, kw_only=True):
    """A limit, and what is in use of it now."""

    name: str  # queue:NAME, task:NAME, tenant:NAME, key:NAME, key:PREFIX*
    scope: str  # queue, task, tenant, key or family
    running: int  # jobs; of a family, of all its keys
    most: int | None  # that may run at once; of a family, of each key
    rate: str | None
    burst: int | None
    tokens: float | None  # units that could begin now
    next_token_at: Timestamp | None  # when the next unit can begin; null: now
    waiting_lanes: int  # lanes of jobs that it holds up, as far as counted
    is_full: bool  # no job under it can begin now; of a family, of one of its keys
    strict: bool
    source: str  # "run time" or "code"
    declared: DeclaredLimitView | None
    rule: str  # the name of the rule in force: of one key of a family, that of the family
    keys: tuple[LimitView, ...]  # of a family: the fullest of its keys
    holders: tuple[HolderView, ...] = ()  # the running jobs, the oldest first; only of a single limit
    warning: str | None = None  # only in the answer to a change: why it may have no effect


def limit_view(held: Held) -> LimitView:
    same = {name: getattr(held, name) for name in _SAME}
    keys = tuple(limit_view(key) for key in held.keys)
    return LimitView(
        **same,
        scope="family" if held.name.endswith("*") else held.name.partition(":")[0],
        is_full=_is_full(held) or any(key.is_full for key in keys),
        declared=None if held.declared is None else _declared(held.declared),
        keys=keys,
    )


def with_holders(view: LimitView, jobs: Sequence[Job]) -> LimitView:
    holders = [HolderView(**{name: getattr(job, name) for name in _HOLDER}) for job in jobs]
    return replace(view, holders=tuple(holders))


_SAME = (
    "name", "running", "most", "rate", "burst", "tokens", "next_token_at", "waiting_lanes", "strict",
    "source", "rule",
)  # fmt: skip
_HOLDER = HolderView.__struct_fields__


def fullness(view: LimitView) -> float:
    """How much of a limit is in use, from 0 to 1."""
    running = 0.0 if view.most is None else view.running / view.most
    rate = 0.0 if view.tokens is None or view.burst is None else 1 - view.tokens / view.burst
    return max(running, rate)


def _is_full(held: Held) -> bool:
    is_family = held.name.endswith("*")
    return not is_family and (
        (held.most is not None and held.running >= held.most) or (held.tokens is not None and held.tokens < 1)
    )


def _declared(limit: Limit) -> DeclaredLimitView:
    return DeclaredLimitView(running=limit.running, rate=limit.rate, burst=limit.burst, strict=limit.strict)
