"""What limits and budgets admit in one claim: read when a job under them is met.

Owns the reading of rules for claims. The arithmetic is in ``core/jobs``; counts are of the running jobs
themselves, inside the one write transaction, so nothing is ever given back when a job ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ...core.jobs import buckets
from ...core.jobs.admission import Allowance, Candidate
from ...core.jobs.buckets import bucket_units, take, units_at
from ...core.jobs.limits import Bucket
from ...core.jobs.periods import period_begins, period_ends
from ...model import Period
from ..sql.rules import LimitRow, is_in_force
from .rows import as_json, instant, micros
from .statements import statement
from .writer import Transaction

NS = 1000  # in a microsecond
PERIODS = ("hour", "day", "week", "month")


class Met(NamedTuple):
    """A job that a claim has met, in its place: they sort by it."""

    rank: int
    run_at: int
    id: str
    rowid: int
    tenant: str
    queue: str = ""
    task: str = ""
    lane: str | None = None
    key: str | None = None
    units: int | None = None
    price: float | None = None
    attempt: int = 0
    due: int = 1  # 1: in the line, 2: held


_MET = msgspec.json.Decoder(list[Met])
_KEYS = msgspec.json.Decoder(list[tuple[str, int]])


def read_met(text: str) -> list[Met]:
    try:
        return _MET.decode(text)
    except msgspec.ValidationError:  # one was edited by hand
        return [_salvaged(row) for row in msgspec.json.decode(text)]


def _salvaged(row: Sequence[Any]) -> Met:
    met = Met(*row)
    units = met.units if isinstance(met.units, int) else None
    price = met.price if isinstance(met.price, int | float) else None
    key = met.key if isinstance(met.key, str) else None
    return met._replace(units=units, price=price, key=key)


class RulesInForce:
    """The rules in force. Rows spoiled by hand hold nothing up."""

    def __init__(self, limits: Iterable[LimitRow], tenants: Iterable[Sequence[Any]]) -> None:
        self.limits = {row.name: row for row in limits if is_in_force(row)}
        self.has_limits = bool(self.limits)
        self.has_keys = any(row.scope in ("key", "family") for row in self.limits.values())
        self.has_strict = any(row.strict for row in self.limits.values())
        self.weights: dict[str, float] = {}
        self.budgets: dict[str, tuple[float, Period]] = {}
        for name, weight, budget, period in tenants:
            if isinstance(weight, int | float) and 0 < weight < float("inf"):
                self.weights[name] = float(weight)
            if isinstance(budget, int | float) and period in PERIODS:
                self.budgets[name] = (float(budget), period)
        of_tenants = {row.subject for row in self.limits.values() if row.scope == "tenant"}
        self.tenants = frozenset(of_tenants.union(self.budgets))  # those that a rule may hold up
        self._families = {row.subject: row for row in self.limits.values() if row.scope == "family"}
        self._lengths = sorted({len(prefix) for prefix in self._families}, reverse=True)
        self._under: dict[tuple[str, str, str], tuple[tuple[str, ...], bool]] = {}

    def of_key(self, key: str) -> LimitRow | None:
        """The rule that holds for a key: its own, else that of its longest family."""
        if (own := self.limits.get(f"key:{key}")) is not None:
            return own
        for length in self._lengths:
            if (family := self._families.get(key[:length])) is not None:
                return family
        return None

    def under(self, queue: str, task: str, tenant: str, key: str | None) -> tuple[tuple[str, ...], bool]:
        """The names of all that such a job is under, and whether one of them is a limit."""
        found = self._under.get((queue, task, tenant))
        if found is None:
            if len(self._under) > 100_000:
                self._under.clear()
            names = [f"queue:{queue}", f"task:{task}", f"tenant:{tenant}"]
            names = [name for name in names if name in self.limits]
            budget = (f"budget:{tenant}",) if tenant in self.budgets else ()
            found = self._under[queue, task, tenant] = ((*budget, *names), bool(names))
        if key is not None and self.has_keys and self.of_key(key) is not None:
            return (*found[0], f"key:{key}"), True
        return found


def read_rules(transaction: Transaction) -> RulesInForce:
    limits = [LimitRow(*row) for row in transaction.execute(statement("limits_in_force")).fetchall()]
    tenants = transaction.execute("SELECT name, weight, budget, period FROM rota_tenants").fetchall()
    return RulesInForce(limits, tenants)


class Allowances:
    """The allowances of one claim, by name. A limit is counted when the first job under it is met."""

    def __init__(self, transaction: Transaction, rules: RulesInForce, now: int, asked: int = 0) -> None:
        self._asked = asked  # the size of the claim
        self._transaction = transaction
        self._rules = rules
        self._now = now
        self._running: Mapping[str, int] | None = None
        self._full: dict[str, int] = {}  # when the bucket of a name was full, before this claim
        self._units: dict[str, int] = {}
        self.by_name: dict[str, Allowance] = {}

    def candidates(self, jobs: Sequence[Met]) -> list[Candidate]:
        """The jobs as admission sees them; all that they are under is known from now on."""
        rules, found, unknown = self._rules, [], dict[str, None]()
        if not rules.has_limits and not rules.budgets:
            alike = {tenant: Candidate(tenant) for tenant in {job.tenant for job in jobs}}
            return [alike[job.tenant] for job in jobs]
        for job in jobs:
            names, limited = rules.under(job.queue, job.task, job.tenant, job.key)
            for name in names:
                if name not in self.by_name:
                    unknown[name] = None
            found.append(Candidate(job.tenant, job.units or 1, job.price, names, limited))
        if unknown:
            self._read(list(unknown))
        return found

    def is_full(self, name: str) -> bool:
        """Whether nothing more can begin under a limit or budget."""
        if name not in self.by_name:
            kind, _, subject = name.partition(":")
            if name not in self._rules.limits and not (kind == "budget" and subject in self._rules.budgets):
                return False
            self._read([name])
        return self.by_name[name].is_full

    def is_ample(self, name: str) -> bool:
        """Whether a job may be claimed ahead under a limit that is known."""
        return self.by_name[name].is_ample(1)

    def slots(self, name: str) -> int | None:
        """How many jobs of one unit may begin under a limit; None: any number."""
        if name not in self._rules.limits or self.is_full(name):
            return 0 if name in self._rules.limits else None
        known = self.by_name[name]
        return min((most for most in (known.running, known.units) if most is not None), default=None)

    def slots_of_key(self, key: str) -> int | None:
        """How many jobs may begin under a key that is known; None: any number."""
        known = self.by_name.get(f"key:{key}")
        return None if known is None or known.running is None else known.running

    def _read(self, names: Sequence[str]) -> None:
        rules = {name: rule for name in names if (rule := self._rule(name)) is not None}
        keys = [name[4:] for name, rule in rules.items() if rule.running is not None and name[:4] == "key:"]
        running: Mapping[str, int] = self._count_keys(keys) if keys else {}
        if any(rule.running is not None and name[:4] != "key:" for name, rule in rules.items()):
            running = {**running, **self._count()}
        if any(rule.every_ns is not None for rule in rules.values()):
            self._read_buckets({name: rule for name, rule in rules.items() if rule.every_ns is not None})
        for name in names:
            rule = rules.get(name)
            if rule is None:
                self.by_name[name] = self._budget(name.partition(":")[2])
                continue
            slots = None if rule.running is None else rule.running - running.get(name, 0)
            units = None
            if (bucket := _bucket(rule)) is not None:
                units = self._units[name] = bucket_units(bucket, self._full[name], self._now * NS)
            # a key of a family keeps only its own jobs waiting: one slot for others is enough
            asked = self._asked if rule.name == name else 1
            self.by_name[name] = Allowance(running=slots, units=units, asked=asked, every_ns=rule.every_ns)

    def _rule(self, name: str) -> LimitRow | None:
        return self._rules.of_key(name[4:]) if name[:4] == "key:" else self._rules.limits.get(name)

    def _count_keys(self, keys: Sequence[str]) -> dict[str, int]:
        """Those that have running jobs."""
        (text,) = self._transaction.execute(statement("running_keys"), (as_json(keys),)).fetchone()
        return {f"key:{key}": n for key, n in _KEYS.decode(text)}

    def _count(self) -> Mapping[str, int]:
        """Running jobs by queue, task and tenant, counted once: nothing begins under a limit unread."""
        if self._running is None:
            running: dict[str, int] = {}
            for queue, task, tenant, n in self._transaction.execute(statement("running_by")).fetchall():
                for name in (f"queue:{queue}", f"task:{task}", f"tenant:{tenant}"):
                    running[name] = running.get(name, 0) + n
            self._running = running
        return self._running

    def _read_buckets(self, rules: Mapping[str, LimitRow]) -> None:
        """A key of a family has a bucket of its own; the others are in the rows of their rules."""
        own = [name for name, rule in rules.items() if rule.name == name]
        of_families = [name[4:] for name, rule in rules.items() if rule.name != name]
        self._full.update(dict.fromkeys(rules, 0))
        if own:
            rows = self._transaction.execute(statement("limits_of"), (as_json(own),)).fetchall()
            self._full.update({name: full for name, full in rows if isinstance(full, int)})
        if of_families:
            (text,) = self._transaction.execute(statement("buckets_of"), (as_json(of_families),)).fetchone()
            self._full.update({f"key:{key}": full for key, full in _KEYS.decode(text)})

    def _budget(self, tenant: str) -> Allowance:
        budget, period = self._rules.budgets[tenant]
        begins = micros(period_begins(period, instant(self._now)))
        given = {"tenant": tenant, "unit": "day" if period == "week" else period, "begins": begins}
        (spent,) = self._transaction.execute(statement("reserved"), given).fetchone()
        return Allowance(budget=budget, spent=float(spent))

    def write(self) -> None:
        """Write what was taken from buckets."""
        own, of_families = [], []
        for name, units in self._units.items():
            taken = units - (self.by_name[name].units or 0)
            rule = self._rule(name)
            bucket = None if rule is None else _bucket(rule)
            if taken and rule is not None and bucket is not None:
                full = self._full[name] = take(bucket, self._full[name], self._now * NS, taken)
                if rule.name == name:
                    own.append((full, name))
                else:
                    of_families.append((name[4:], full))
        if own:
            self._transaction.executemany("UPDATE rota_limits SET full_ns = ? WHERE name = ?", own)
        if of_families:
            self._transaction.execute(statement("write_bucket"), (as_json(of_families),))

    def give_back(self, name: str, units: int, claimed_at: int) -> None:
        """Return units that a job took and never used."""
        rule = self._rule(name)
        bucket = None if rule is None else _bucket(rule)
        if rule is None or bucket is None or rule.updated_at > claimed_at:
            return
        self._read_buckets({name: rule})
        full = buckets.give_back(bucket, self._full[name], self._now * NS, units, claimed_at * NS)
        if rule.name == name:
            self._transaction.execute("UPDATE rota_limits SET full_ns = ? WHERE name = ?", (full, name))
        else:
            self._transaction.execute(statement("write_bucket"), (as_json([(name[4:], full)]),))

    def opens_at(self) -> int | None:
        """When the first of what held a job up will admit it by itself; asked after ``write``."""
        times = []
        for name, known in self.by_name.items():
            if known.budget is not None:
                if known.is_full:
                    period = self._rules.budgets[name.partition(":")[2]][1]
                    times.append(micros(period_ends(period, instant(self._now))))
                continue
            if known.units is None or (known.units > 0 and not known.lacking):
                continue
            rule = self._rule(name)
            bucket = None if rule is None else _bucket(rule)
            if bucket is not None and (known.running is None or known.running > 0):
                at = units_at(bucket, self._full[name], self._now * NS, known.lacking or 1)
                if at is not None:
                    times.append(-(-at // NS))
        return min(times, default=None)


def _bucket(rule: LimitRow) -> Bucket | None:
    if rule.every_ns is None or rule.burst is None:
        return None
    return Bucket(rule.every_ns, rule.burst)


def give_back(transaction: Transaction, ids: Sequence[str], now: int) -> None:
    """Return to their buckets what released jobs took when they were claimed, which is their ``started_at``.

    Not to the bucket of a rule that has changed since.
    """
    limits = [LimitRow(*row) for row in transaction.execute(statement("limits_in_force")).fetchall()]
    if all(row.every_ns is None for row in limits):
        return
    rules = RulesInForce(limits, ())  # all: a rule of a key's own without a rate holds before its family's
    for *kind, units, claimed_at in transaction.execute(statement("released"), (as_json(ids),)).fetchall():
        names, _ = rules.under(*kind)
        allowances = Allowances(transaction, rules, now)
        for name in names:
            allowances.give_back(name, units or 1, claimed_at)
