"""Rules of limits and tenants as columns, for stores that keep them in tables.

Owns what the columns of a rule mean and which rows make no sense. Must never do I/O. Claims read the columns
of the limit in force, and so does ``in_use.py``: rows that are not ``is_in_force`` hold nothing up. ``fault``
says what is wrong with a row that was edited by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from ...core.jobs.limits import bucket, check_limit, is_family, limit_name
from ...errors import OptionError
from ...model import Finding, Limit, LimitRule, TenantRule

MOST_FAULTS = 10  # rows that are named

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


def queues_of(rules: Iterable[LimitRule | TenantRule]) -> set[str]:
    """The queues that rules are for: their lines wait for these rules, what waits for others is held."""
    found = (scope_and_subject(rule.name) for rule in rules if isinstance(rule, LimitRule))
    return {subject for scope, subject in found if scope == "queue"}


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
