"""A job that takes more units than a rate ever has would wait for ever: it is refused when it is enqueued.

Reads the rules of the limits that a job with ``units`` is under, at most once a second each. Jobs that take
one unit cost nothing here. Never writes, and never decides when a job may begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..core.jobs.limits import bucket, family_of
from ..errors import OptionError
from ..model import Limit, LimitRules, NewJob
from ..runtime.clock import monotonic
from ..runtime.runtime import Runtime
from ..store.protocol import StoreWithin

FRESH_S = 1.0
MOST_KNOWN = 20_000
BATCH = 5000  # names asked for at once


class _Read(NamedTuple):
    limit: Limit | None
    at: float


class BurstCheck:
    """The bursts of the limits in the store, as this process has read them last."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._stores = runtime.stores
        self._known: dict[str, _Read] = {}

    async def check(self, store: StoreWithin, jobs: Sequence[NewJob]) -> None:
        """OptionError for a job that takes more than a limit it is under ever has at once."""
        large = _large(jobs)
        if not large:
            return
        if self._stores is not self._runtime.stores or len(self._known) > MOST_KNOWN:
            self._stores, self._known = self._runtime.stores, {}
        stale = monotonic() - FRESH_S
        names = {name for job in large for name in _names(job)}
        asked = sorted(name for name in names if (read := self._known.get(name)) is None or read.at < stale)
        for first in range(0, len(asked), BATCH):
            some = asked[first : first + BATCH]
            rules = {rule.name: rule.limit for rule in await store.survey(LimitRules(tuple(some)))}
            self._known.update({name: _Read(rules.get(name), monotonic()) for name in some})
        self.check_at_hand(large)

    def check_at_hand(self, jobs: Iterable[NewJob]) -> None:
        """The same without I/O, by what was read before."""
        for job in _large(jobs):
            rules = {
                name for name in _names(job) if (read := self._known.get(name)) is not None and read.limit
            }
            for name in _in_force(job, rules):
                limit = self._known[name].limit
                _check(job.units or 1, name, limit)


def _large(jobs: Iterable[NewJob]) -> list[NewJob]:
    return [job for job in jobs if job.units is not None and job.units > 1]


def _names(job: NewJob) -> Iterator[str]:
    """Of all rules that it may be under."""
    yield from (f"queue:{job.queue}", f"task:{job.task}", f"tenant:{job.tenant}")
    if (key := job.concurrency_key) is not None:
        yield f"key:{key}"
        yield from (f"key:{key[:end]}*" for end in range(len(key) + 1))


def _in_force(job: NewJob, rules: set[str]) -> Iterator[str]:
    yield from (
        name for name in (f"queue:{job.queue}", f"task:{job.task}", f"tenant:{job.tenant}") if name in rules
    )
    if (key := job.concurrency_key) is not None:
        name = f"key:{key}" if f"key:{key}" in rules else family_of(key, rules)
        if name is not None:
            yield name


def _check(units: int, name: str, limit: Limit | None) -> None:
    rate = None if limit is None else bucket(limit)
    if rate is not None and units > rate.burst:
        raise OptionError(
            f"units={units}: is more than the burst of limit {name}, {rate.burst}, so the job would wait "
            f"for ever; raise the burst, or take at most {rate.burst} units"
        )
