"""History: days made ahead, days forgotten.

Owns the upkeep of ``rota.done`` and the tally. Must never make a worker wait: what cannot have its
lock within a moment is left for the next time, and what the role may not do is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ...model import FINAL, State
from .connections import Connections, Row

log = logging.getLogger("rota.store")

DAYS_AHEAD = range(2, 15)  # never today or tomorrow, see rota.make_day
DAY = timedelta(days=1)
WHOLE_DAY_FROM = 10_000  # jobs; a smaller day that is over the limit is deleted in batches

_DAYS = "SELECT partition::text, day FROM rota.days WHERE day < %s ORDER BY day"
_MAKE = """
SELECT rota.make_day(CAST(%s AS timestamptz) + make_interval(hours => 24 * d))
  FROM unnest(%s::int[]) AS d
"""
_COUNT = """
SELECT coalesce(sum(n), 0)::bigint FROM rota.tally WHERE minute >= %s AND minute < %s AND state <> 'removed'
"""
_DROP = "SELECT rota.drop_day(to_regclass(%s), %s)"
_PRUNE = "SELECT rota.prune_part(to_regclass(%s), %s::text[], %s::timestamptz[], %s)"


class History:
    """The history of one store object; it learns whether its role may make and drop days."""

    def __init__(self, connections: Connections, shown: str) -> None:
        self._connections = connections
        self._shown = shown
        self._owner = True  # until the server says otherwise

    async def upkeep(self, now: datetime) -> None:
        if self._owner:
            made = await self._rows(_MAKE, (now, list(DAYS_AHEAD)))
            self._learn(row[0] for row in made)
        await self._rows("SELECT rota.fold_tally(%s)", (now,))
        await self._rows("SELECT rota.fold_runs(%s)", (now,))
        await self._rows("SELECT rota.fold_spending(%s)", (now,))
        await self._rows("DELETE FROM rota.waiters WHERE until < %s", (now,))
        await self._rows("DELETE FROM rota.keys WHERE kept_until <= %s", (now,))
        await self._rows("DELETE FROM rota.tally WHERE state = 'removed' AND minute < %s", (now - 90 * DAY,))

    async def prune(self, before: Mapping[State, datetime], limit: int) -> int:
        """A whole expired day goes at once, whatever its size; the rest row by row, oldest day first."""
        cutoffs = {state: instant for state, instant in before.items() if state in FINAL}
        if not cutoffs:
            return 0
        forgotten = 0
        expired = min(cutoffs.values()) if len(cutoffs) == len(FINAL) else datetime.min.replace(tzinfo=UTC)
        days = await self._rows(_DAYS, (max(cutoffs.values()),))
        for part, day in [*days, ("rota.done_default", None)]:
            if forgotten >= limit:
                break
            if day is not None and day + DAY <= expired:
                dropped = await self._drop(part, day, limit - forgotten)
                if dropped is not None:
                    forgotten += dropped
                    continue
            forgotten += await self._batch(part, cutoffs, limit - forgotten)
        return forgotten

    async def prune_kept(self, now: datetime, limit: int) -> int:
        """Jobs with a retention of their own."""
        ((count,),) = await self._rows("SELECT rota.prune_kept(%s, %s)", (now, limit))
        return int(count)

    async def _drop(self, part: str, day: datetime, limit: int) -> int | None:
        """How many jobs went with the day; None: it stays."""
        if not self._owner:
            return None
        ((count,),) = await self._rows(_COUNT, (day, day + DAY))
        if limit < count < WHOLE_DAY_FROM:
            return None
        # before the lock that makes workers wait, not under it
        for beside in ("attempts", "payloads"):
            await self._rows(
                f"DELETE FROM rota.{beside} AS b USING {part} AS d WHERE b.job = d.id AND d.keep IS NULL"
            )
        ((dropped,),) = await self._rows(_DROP, (part, day))
        self._learn((dropped,))
        return max(count, 0) if dropped else None

    async def _batch(self, part: str, cutoffs: Mapping[State, datetime], limit: int) -> int:
        states = [state.value for state in cutoffs]
        ((count,),) = await self._rows(_PRUNE, (part, states, list(cutoffs.values()), limit))
        return int(count)

    async def _rows(self, statement: str, params: Sequence[Any] = ()) -> list[Row]:
        return await self._connections.rows(statement, params, patience="retention")

    def _learn(self, answers: Iterable[bool | None]) -> None:
        """None among the answers: this role may not; say so once, and ask no more."""
        if self._owner and None in answers:
            self._owner = False
            log.warning(
                "%s: this role does not own the schema rota, so it neither makes nor drops days of history; "
                "jobs end all the same, but pruning is slower: let a member of the owner's role run upkeep",
                self._shown,
            )
