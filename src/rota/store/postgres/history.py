"""History: days made ahead, days forgotten.

Owns the upkeep of ``rota.done`` and the tally. Must never make a worker wait: what cannot have its
lock within a moment is left for the next time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from ...model import FINAL, State
from .connections import Connections

DAYS_AHEAD = 14
DAY = timedelta(days=1)
WHOLE_DAY_FROM = 10_000  # jobs; a smaller day that is over the limit is deleted in batches

_DAYS = "SELECT partition::text, day FROM rota.days WHERE day < %s ORDER BY day"
_MAKE = """
SELECT rota.make_day(CAST(%s AS timestamptz) + make_interval(hours => 24 * d))
  FROM generate_series(0, %s) AS d
"""
_COUNT = """
SELECT coalesce(sum(n), 0)::bigint FROM rota.tally WHERE minute >= %s AND minute < %s AND state <> 'removed'
"""
_DROP = "SELECT rota.drop_day(to_regclass(%s), %s)"
_PRUNE = "SELECT rota.prune_part(to_regclass(%s), %s::text[], %s::timestamptz[], %s)"


async def upkeep(connections: Connections, now: datetime) -> None:
    await connections.rows(_MAKE, (now, DAYS_AHEAD))
    await connections.rows("SELECT rota.fold_tally(%s)", (now,))
    await connections.rows("DELETE FROM rota.waiters WHERE until < %s", (now,))
    await connections.rows(
        "DELETE FROM rota.tally WHERE state = 'removed' AND minute < %s", (now - 90 * DAY,)
    )


async def prune(connections: Connections, before: Mapping[State, datetime], limit: int) -> int:
    """A whole expired day goes at once, whatever its size; the rest row by row, oldest day first."""
    cutoffs = {state: instant for state, instant in before.items() if state in FINAL}
    if not cutoffs:
        return 0
    forgotten = 0
    expired = min(cutoffs.values()) if len(cutoffs) == len(FINAL) else datetime.min.replace(tzinfo=UTC)
    days = await connections.rows(_DAYS, (max(cutoffs.values()),))
    for part, day in [*days, ("rota.done_default", None)]:
        if forgotten >= limit:
            break
        if day is not None and day + DAY <= expired:
            dropped = await _drop(connections, part, day, limit - forgotten)
            if dropped is not None:
                forgotten += dropped
                continue
        forgotten += await _batch(connections, part, cutoffs, limit - forgotten)
    return forgotten


async def _drop(connections: Connections, part: str, day: datetime, limit: int) -> int | None:
    """How many jobs went with the day; None: it stays."""
    ((count,),) = await connections.rows(_COUNT, (day, day + DAY))
    if limit < count < WHOLE_DAY_FROM:
        return None
    # before the lock that makes workers wait, not under it
    await connections.rows(f"DELETE FROM rota.attempts AS a USING {part} AS d WHERE a.job = d.id")
    ((dropped,),) = await connections.rows(_DROP, (part, day))
    return max(count, 0) if dropped else None


async def _batch(
    connections: Connections, part: str, cutoffs: Mapping[State, datetime], limit: int
) -> int:
    states = [state.value for state in cutoffs]
    ((count,),) = await connections.rows(_PRUNE, (part, states, list(cutoffs.values()), limit))
    return int(count)
