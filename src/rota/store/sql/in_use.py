"""What is in use of limits, from what a store has counted. Must never do I/O.

A limit holds a lane of jobs up if it is full and the jobs are under it; a queue's own line counts as a lane.
The lane of a key waits for the key also while its bucket has units left: its jobs may take more than these.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from heapq import nsmallest
from math import floor
from typing import NamedTuple

import msgspec

from ...core.jobs.buckets import bucket_level, fit, units_at
from ...core.jobs.limits import Bucket, family_of, is_family
from ...model import Held, LimitRule
from .rules import LimitRow, is_in_force, limit_rule

MOST_KEYS = 20  # of a family are shown
MOST_LANES = 1000  # that are counted
NS_PER_US = 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class WaitingLane(NamedTuple):
    """Jobs that are due and wait; None: of several."""

    queue: str
    tenant: str | None = None
    task: str | None = None
    key: str | None = None


def key_of_lane(lane: str | None) -> str | None:
    """The key that the jobs of a lane wait for, if it is a key's."""
    return lane[2:] if lane is not None and lane.startswith("k:") else None


class LimitsInUse:
    """The limits that a store has read, and what it has counted: running jobs by scope (queue, task, tenant,
    key) and subject, and by key, of families, when its bucket is full again."""

    def __init__(
        self,
        rows: Iterable[LimitRow],
        running: Mapping[tuple[str, str], int],
        buckets: Mapping[str, int],
        now_ns: int,
        lanes: Sequence[WaitingLane] = (),
    ) -> None:
        self._rules = {row.name: row for row in rows if is_in_force(row)}
        self._running = running
        self._buckets = buckets
        self._now_ns = now_ns
        self._lanes = lanes
        self._decoded: dict[str, LimitRule] = {}

    def held(self, names: Sequence[str] | None, most: int) -> list[Held]:
        """What is in use of each limit, in the order of the names; of some of them, also single keys."""
        if names is None:
            return [self._of_rule(self._rules[name]) for name in sorted(self._rules)[:most]]
        found = [self._of_name(name) for name in sorted(set(names))]
        return [one for one in found if one is not None][:most]

    def is_full(self, name: str) -> bool:
        """Whether nothing more under the limit of this name, or of this one key, can begin now."""
        held = self._of_name(name, counted=False)
        return held is not None and (
            (held.most is not None and held.running >= held.most)
            or (held.tokens is not None and held.tokens < 1)
        )

    # --- one limit -------------------------------------------------------------------------------

    def _of_name(self, name: str, counted: bool = True) -> Held | None:
        if (row := self._rules.get(name)) is not None:
            return self._of_rule(row, counted)
        key = name.removeprefix("key:")
        family = family_of(key, self._rules) if name.startswith("key:") and not is_family(name) else None
        return None if family is None else self._of_key(key, self._rules[family], counted)

    def _of_rule(self, row: LimitRow, counted: bool = True) -> Held:
        if row.scope != "family":
            n = self._running.get((row.scope, row.subject), 0)
            return self._held(row, row.name, n, row.full_ns, counted)
        keys = self._keys_by_family.get(row.name, ())
        total = self._held(
            row, row.name, sum(self._running.get(("key", key), 0) for key in keys), None, False
        )
        if not counted:
            return total
        shown = tuple(self._of_key(key, row, counted) for key in nsmallest(MOST_KEYS, keys, self._by_use))
        waiting = sum(self._waiting[f"key:{key}"] for key in keys) if self._waiting else 0
        return msgspec.structs.replace(total, keys=shown, waiting_lanes=waiting)

    def _by_use(self, key: str) -> tuple[int, int, str]:
        """The fullest first; there may be very many."""
        return -self._running.get(("key", key), 0), -self._buckets.get(key, 0), key

    def _of_key(self, key: str, row: LimitRow, counted: bool) -> Held:
        running, full_ns = self._running.get(("key", key), 0), self._buckets.get(key, 0)
        return self._held(row, f"key:{key}", running, full_ns, counted)

    def _held(self, row: LimitRow, name: str, running: int, full_ns: int | None, counted: bool) -> Held:
        rule = self._read(row)
        tokens, next_ns = None, None
        if row.every_ns is not None and row.burst is not None and full_ns is not None:
            tokens, next_ns = tokens_at(Bucket(row.every_ns, row.burst), full_ns, self._now_ns)
        return Held(
            name=name,
            running=running,
            most=row.running,
            rate=None if rule.limit is None else rule.limit.rate,
            burst=row.burst,
            tokens=tokens,
            next_token_at=None if next_ns is None else from_ns(next_ns),
            waiting_lanes=self._waiting[name] if counted else 0,
            strict=bool(row.strict),
            source="code" if rule.chosen is None else "run time",
            declared=None if rule.chosen is None else rule.declared,
            rule=row.name,
        )

    def _read(self, row: LimitRow) -> LimitRule:
        if (found := self._decoded.get(row.name)) is None:
            found = self._decoded[row.name] = limit_rule(row, None) or LimitRule(name=row.name)
        return found

    # --- keys and lanes --------------------------------------------------------------------------

    @cached_property
    def _keys_by_family(self) -> Mapping[str, Sequence[str]]:
        """The keys of each family that have running jobs, a bucket or waiting jobs."""
        seen = {key for scope, key in self._running if scope == "key"} | self._buckets.keys()
        seen |= {lane.key for lane in self._lanes if lane.key is not None}
        keys: defaultdict[str, list[str]] = defaultdict(list)
        for key in seen:
            if (name := self._rule_of_key(key)) is not None and is_family(name):
                keys[name].append(key)
        return keys

    def _rule_of_key(self, key: str) -> str | None:
        own = self._rules.get(f"key:{key}")
        return own.name if own is not None and own.scope == "key" else family_of(key, self._rules)

    @cached_property
    def _waiting(self) -> Counter[str]:
        """By name of a limit, or of one key of a family: the lanes that it holds up."""
        return Counter(name for lane in self._lanes for name in self._over(lane) if self._holds(name, lane))

    def _holds(self, name: str, lane: WaitingLane) -> bool:
        if self.is_full(name):
            return True
        key = self._of_name(name, counted=False) if name == f"key:{lane.key}" else None
        return key is not None and key.tokens is not None and key.tokens < (key.burst or 0)

    def _over(self, lane: WaitingLane) -> Iterator[str]:
        subjects = (("queue", lane.queue), ("task", lane.task), ("tenant", lane.tenant))
        yield from (f"{scope}:{subject}" for scope, subject in subjects if subject is not None)
        if lane.key is not None:
            yield f"key:{lane.key}"


def tokens_at(bucket: Bucket, full_ns: int, now_ns: int) -> tuple[float, int | None]:
    """The units that could begin now, and when the next one can; None: now."""
    full_ns = fit(bucket, full_ns, now_ns)
    next_ns = units_at(bucket, full_ns, now_ns)
    return floor(bucket_level(bucket, full_ns, now_ns) * 1000) / 1000, None if next_ns == now_ns else next_ns


def from_ns(at_ns: int) -> datetime:
    """Rounded up: not before."""
    return EPOCH + timedelta(microseconds=-(-at_ns // NS_PER_US))


def to_ns(at: datetime) -> int:
    since = at - EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * NS_PER_US


def wanted_names(names: Sequence[str] | None) -> list[str] | None:
    """The names of all rules that may decide about these: of a key, also every family it could be in.

    None: all, for a rule may take keys out of a family.
    """
    if names is None or any(map(is_family, names)):
        return None
    wanted = set(names)
    for name in names:
        scope, _, key = name.partition(":")
        if scope == "key":
            wanted.update(f"key:{key[:end]}*" for end in range(len(key) + 1))
    return sorted(wanted)
