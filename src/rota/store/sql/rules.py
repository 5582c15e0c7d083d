"""Rules of limits and tenants as columns, and what is in use of a limit, for stores that keep them in tables.

Owns what the columns of a rule mean and which rows make no sense. Must never do I/O. Claims read the columns
of the limit in force, and so does ``held``: rows that are not ``is_in_force`` hold nothing up. ``fault`` says
what is wrong with a row that was edited by hand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import floor
from typing import Any, NamedTuple

import msgspec

from ...core.jobs.buckets import bucket_level, fit, units_at
from ...core.jobs.limits import Bucket, bucket, check_limit, family_of, is_family, limit_name
from ...errors import OptionError
from ...model import Finding, Held, Limit, LimitRule, TenantRule

MOST_KEYS = 20  # of a family are shown
MOST_FAULTS = 10  # rows that are named
NS_PER_US = 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

LIMIT_COLUMNS = (
    "name", "scope", "subject", "running", "every_ns", "burst", "strict", "full_ns", "declared", "chosen",
    "version", "updated_at",
)  # fmt: skip
TENANT_COLUMNS = TenantRule.__struct_fields__

_LIMIT = msgspec.json.Decoder(Limit)


class LimitRow(NamedTuple):
    """A row of the table of limits; ``updated_at`` as the store gives it."""

    name: str
    scope: str
    subject: str
    running: int | None
    every_ns: int | None
    burst: int | None
    strict: bool
    full_ns: int
    declared: str | None
    chosen: str | None
    version: int
    updated_at: Any


# --- to columns ----------------------------------------------------------------------------------


def limit_columns(rule: LimitRule) -> dict[str, Any] | None:
    """What a store writes of a rule; None: it says nothing, so its row is deleted."""
    if rule.limit is None:
        return None
    return {
        "name": rule.name,
        **effective(rule.name, rule.limit),
        "declared": _text(rule.declared),
        "chosen": _text(rule.chosen),
    }


def effective(name: str, limit: Limit) -> dict[str, Any]:
    """The columns that a claim reads."""
    scope, subject = scope_and_subject(name)
    rate = bucket(limit)
    return {
        "scope": scope,
        "subject": subject,
        "running": limit.running,
        "every_ns": None if rate is None else rate.every_ns,
        "burst": None if rate is None else rate.burst,
        "strict": limit.strict,
    }


def scope_and_subject(name: str) -> tuple[str, str]:
    scope, _, subject = name.partition(":")
    return ("family", subject.removesuffix("*")) if is_family(name) else (scope, subject)


def _text(limit: Limit | None) -> str | None:
    return None if limit is None else msgspec.json.encode(limit).decode()


# --- from columns --------------------------------------------------------------------------------


def limit_rule(row: LimitRow, updated_at: datetime | None) -> LimitRule | None:
    """None: it cannot be read."""
    try:
        return LimitRule(
            name=limit_name(row.name),
            declared=_limit(row.declared),
            chosen=_limit(row.chosen),
            version=row.version,
            updated_at=updated_at,
        )
    except _UNREADABLE:
        return None


def _limit(text: str | None) -> Limit | None:
    return None if text is None else check_limit(_LIMIT.decode(text))


_UNREADABLE = (OptionError, msgspec.MsgspecError, TypeError, ValueError)


def is_in_force(row: LimitRow) -> bool:
    """Whether claims take notice of it: the name fits, and the numbers are ones that jobs can pass under."""
    try:
        fits = (row.scope, row.subject) == scope_and_subject(limit_name(row.name))
    except OptionError:
        return False
    has_rate = _is_number(row.every_ns) and _is_number(row.burst)
    is_sound = (row.running is None or _is_number(row.running)) and (row.every_ns is None or has_rate)
    return fits and is_sound and (row.running is not None or has_rate) and isinstance(row.full_ns, int)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and value > 0


def fault(row: LimitRow) -> str | None:
    """What is wrong with the row, if anything is."""
    try:
        name = limit_name(row.name)
        declared, chosen = _limit(row.declared), _limit(row.chosen)
    except OptionError as error:
        return str(error)
    except _UNREADABLE as error:
        return f"its limit cannot be read: {error}"
    limit = declared if chosen is None else chosen
    if limit is None:
        return "neither declared nor chosen has a limit"
    for column, value in effective(name, limit).items():
        found = getattr(row, column)
        if found != value:
            return f"column {column} is {found!r}, where its limit says {value!r}"
    return None if isinstance(row.full_ns, int) else f"column full_ns is {row.full_ns!r}: not a number"


def tenant_fault(columns: Mapping[str, Any]) -> str | None:
    """Why the row of a tenant makes no sense, if it makes none."""
    for column, value in columns.items():
        if column in ("name", "version", "updated_at") or (value is None and column != "weight"):
            continue
        if column == "period":
            if value not in ("hour", "day", "week", "month"):
                return f"column period is {value!r}: must be hour, day, week or month"
        elif isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
            return f"column {column} is {value!r}: not a number"
        elif column == "weight" and value <= 0:
            return f"column weight is {value!r}: must be above 0"
        elif column != "max_priority" and value < 0:
            return f"column {column} is {value!r}: must not be negative"
    if columns["budget"] is not None and columns["period"] is None:
        return "it has a budget without a period"
    return None


def rule_findings(prefix: str, limits: Iterable[LimitRow], tenants: Iterable[Sequence[Any]]) -> list[Finding]:
    """What ``check_health`` says about the rules; ``prefix``: of the names of their tables."""
    faults = [(f"{prefix}limits", row.name, "limits", fault(row)) for row in limits]
    for values in tenants:
        columns = dict(zip(TENANT_COLUMNS, values, strict=True))
        faults.append((f"{prefix}tenants", columns["name"], "tenants", tenant_fault(columns)))
    found = [
        Finding(
            check="rules",
            level="warning",
            text=f"the row {shown(name)} of {table} was edited by hand and makes no sense: {said}",
            remedy=f"write it again with `rota {command} set {shown(name)} …`, or delete the row",
        )
        for table, name, command, said in faults
        if said is not None
    ]
    many = f"{len(faults)} rule" if len(faults) == 1 else f"{len(faults)} rules"
    return found[:MOST_FAULTS] or [Finding(check="rules", level="ok", text=f"{many} of limits and tenants")]


def shown(name: Any) -> str:
    """Names are other people's: no line breaks, no escape sequences."""
    return "".join(c for c in str(name) if c.isprintable())[:200]


# --- in use --------------------------------------------------------------------------------------


class InUse(NamedTuple):
    """What stores count for ``Limits``."""

    running: Mapping[tuple[str, str], int]  # by scope (queue, task, tenant, key) and subject
    buckets: Mapping[str, int]  # by key, of families: when its bucket is full again
    waiting: Mapping[str, int]  # by name of a rule or ``key:NAME``: lanes that wait


def held(
    rows: Iterable[LimitRow], in_use: InUse, now_ns: int, names: Sequence[str] | None, most: int
) -> list[Held]:
    """What is in use of each limit, in the order of the names; of some of them, also single keys."""
    by_name = {row.name: row for row in rows if is_in_force(row)}
    if names is not None:
        found = [_of_name(name, by_name, in_use, now_ns) for name in sorted(set(names))]
        return [one for one in found if one is not None][:most]
    shown = sorted(by_name)[:most]
    keys = _keys_by_rule(by_name, in_use)
    return [_of_rule(by_name[name], keys.get(name, ()), in_use, now_ns) for name in shown]


def _of_name(name: str, by_name: Mapping[str, LimitRow], in_use: InUse, now_ns: int) -> Held | None:
    if (row := by_name.get(name)) is not None:
        return _of_rule(row, _keys_by_rule(by_name, in_use).get(name, ()), in_use, now_ns)
    key = name.removeprefix("key:")
    family = family_of(key, by_name) if name.startswith("key:") and not is_family(name) else None
    return None if family is None else _of_key(key, by_name[family], in_use, now_ns)


def _keys_by_rule(by_name: Mapping[str, LimitRow], in_use: InUse) -> Mapping[str, Sequence[str]]:
    """The keys in use of each family."""
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for key in {key for scope, key in in_use.running if scope == "key"} | in_use.buckets.keys():
        if f"key:{key}" not in by_name and (family := family_of(key, by_name)) is not None:
            keys[family].append(key)
    return keys


def _of_rule(row: LimitRow, keys: Sequence[str], in_use: InUse, now_ns: int) -> Held:
    if row.scope != "family":
        n = in_use.running.get((row.scope, row.subject), 0)
        return _held(row, row.name, n, in_use.waiting.get(row.name, 0), row.full_ns, now_ns)
    each = [_of_key(key, row, in_use, now_ns) for key in keys]
    each.sort(key=lambda one: (-one.running, one.tokens or 0, one.name))
    waiting = sum(one.waiting_lanes for one in each)
    total = _held(row, row.name, sum(one.running for one in each), waiting, None, now_ns)
    return msgspec.structs.replace(total, keys=tuple(each[:MOST_KEYS]))


def _of_key(key: str, row: LimitRow, in_use: InUse, now_ns: int) -> Held:
    name = f"key:{key}"
    n, waiting = in_use.running.get(("key", key), 0), in_use.waiting.get(name, 0)
    return _held(row, name, n, waiting, in_use.buckets.get(key, 0), now_ns)


def _held(row: LimitRow, name: str, running: int, waiting: int, full_ns: int | None, now_ns: int) -> Held:
    rule = limit_rule(row, None) or LimitRule(name=row.name)
    tokens, next_ns = None, None
    if row.every_ns is not None and row.burst is not None and full_ns is not None:
        tokens, next_ns = tokens_at(Bucket(row.every_ns, row.burst), full_ns, now_ns)
    return Held(
        name=name,
        running=running,
        most=row.running,
        rate=None if rule.limit is None else rule.limit.rate,
        burst=row.burst,
        tokens=tokens,
        next_token_at=None if next_ns is None else from_ns(next_ns),
        waiting_lanes=waiting,
        strict=bool(row.strict),
        source="code" if rule.chosen is None else "run time",
        declared=None if rule.chosen is None else rule.declared,
        rule=row.name,
    )


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


def wanted_names(names: Sequence[str]) -> list[str]:
    """The names of all rules that may decide about these: of a key, also every family it could be in."""
    wanted = set(names)
    for name in names:
        scope, _, key = name.partition(":")
        if scope == "key" and not is_family(name):
            wanted.update(f"key:{key[:end]}*" for end in range(len(key) + 1))
    return sorted(wanted)
