"""The column lists of PostgreSQL, rendered from the fields of a job.

Owns what each placeholder in ``tables/*.sql`` and ``functions/*.sql`` stands for. Must never do I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...core.jobs.backoff import LONGEST
from ...core.jobs.options import (
    CONFLICTS,
    FOREVER,
    LONGEST_NAME,
    MOST_ATTEMPTS,
    MOST_CENTS,
    MOST_TAGS,
    MOST_UNITS,
    PRIORITY_LIMIT,
    SHORTEST_TIMEOUT,
)
from ...model import KEPT_RUN_DAYS
from ..sql.fields import (
    ALL,
    CARRIED,
    DONE,
    FIELDS,
    JOB,
    JSON,
    NAME,
    NEW,
    OPTIONS,
    QUEUED,
    RANK,
    RUNNING,
    TAGS,
    JobField,
    Table,
)
from ..sql.templates import ColumnList, render

LARGE = 2000  # bytes; a larger payload is kept apart, in rota.payloads
# Jobs that become due go there. Read once a statement.
NEWEST_SEGMENT = "coalesce((SELECT s.newest FROM rota.segments AS s ORDER BY s.version DESC LIMIT 1), 0)"
# A caller whose transaction has one snapshot may read an outdated one. What it stores as due is stored as due
# from now on, and joins the newest segment with the next claim.
SEES_NEWEST = "current_setting('transaction_isolation') = 'read committed'"
# A row of rota.tally is updated again and again; with each new segment begins a new one, since the old
# versions of the last cannot be removed either.
TALLY_SLOT = f"(pg_backend_pid() % 64 + 128 * ({NEWEST_SEGMENT} % 255))"
LARGE_RUNNING = 32 * 2**20  # bytes: a sweep that reads more is not made by every worker
STRAYS_LOCK = 7_466_562  # as LOCK in schema.py
# Whether there are tenants beside the default one. If the row is missing: perhaps.
MANY_TENANTS = "coalesce((SELECT s.many FROM rota.segments AS s ORDER BY s.version DESC LIMIT 1), true)"
# What jobs that ended were under, by the bits of rota.running.ruled; the same several times.
FREED_LANES = (
    "array_agg('k:' || concurrency_key) FILTER (WHERE ruled & 8 <> 0) || "
    "array_agg('t:' || task) FILTER (WHERE ruled & 2 <> 0) || "
    "array_agg('n:' || tenant) FILTER (WHERE ruled & 4 <> 0)"
)
RULES_LOCK = 7_466_563  # shared by claims; a session that changes a rule has it alone
MANY_PASSED = 256  # due jobs that a claim may not take: they leave the line
ROUND_LANES = 16  # of a round of a claim
FAIR_CLAIM = 64  # jobs; a claim of as many gives each tenant one before any gets two
MANY_DEAD = 500  # index entries of jobs long gone: passing as many takes a fraction of a millisecond


def fill(template: str) -> str:
    """The template with its column lists."""
    return render(template, LISTS)


def _constant(value: float) -> ColumnList:
    return lambda _, __: [str(value)]


def _met(index: str) -> ColumnList:
    """Entries that a session was given by an index, less those whose row was there."""
    relation = f"'rota.{index}'::regclass"
    met = f"pg_stat_get_xact_tuples_returned({relation}) - pg_stat_get_xact_tuples_fetched({relation})"
    return lambda _, __: [f"({met})"]


def _fetched(index: str) -> ColumnList:
    """Rows that a session was given by an index."""
    return lambda _, __: [f"pg_stat_get_xact_tuples_fetched('rota.{index}'::regclass)"]


def _line_lane(prefix: str, _: frozenset[str]) -> list[str]:
    """The lane of a job in the line: see ``tables/0014_limits.sql``."""
    return [f"CASE WHEN {prefix}tenant <> 'default' OR {MANY_TENANTS} THEN '' END"]


def _tokens(prefix: str, _: frozenset[str]) -> list[str]:
    """The units that a bucket has now; a huge one is capped, so that no sum overflows."""
    p = prefix
    size = f"least({p}burst, 4000000000000000000 / {p}every_ns) * {p}every_ns"
    return [f"((now_ns + {size} - greatest({p}full_ns, now_ns)) / {p}every_ns)"]


def _names(fields: Iterable[JobField]) -> ColumnList:
    columns = [field.postgres for field in fields]
    return lambda prefix, without: [f"{prefix}{column}" for column in columns if column not in without]


def _typed(columns: Iterable[tuple[str, str]]) -> ColumnList:
    pairs = list(columns)
    return lambda _, without: [f"{name} {type}" for name, type in pairs if name not in without]


def _definitions(table: Table) -> ColumnList:
    fields = [field for field in FIELDS if table in field.tables]
    return lambda _, without: [_definition(field, table) for field in fields if field.postgres not in without]


def _definition(field: JobField, table: Table) -> str:
    collated = ' COLLATE "C"' if field.kind in (NAME, TAGS) else ""
    required = "" if table in field.null else " NOT NULL"
    has_default = field.default is not None and (table is QUEUED or field.tables is not ALL)
    default = f" DEFAULT {field.default}" if has_default else ""
    return f"{field.postgres} {field.kind.postgres}{collated}{required}{default}"


def _given(prefix: str, without: frozenset[str]) -> list[str]:
    """The options of a new job as they are stored: from its JSON, with the defaults of the columns."""
    found = []
    for field in (field for field in OPTIONS if field.postgres not in without):
        value = f"{prefix}{field.postgres}"
        if field.kind is TAGS:
            value = f"nullif({value}, '{{}}')"
        found.append(value if field.default is None else f"coalesce({value}, {field.default})")
    return found


def _job(table: Table) -> ColumnList:
    """A row of the table as the views show a job, in the order in which a Job is made."""
    return lambda prefix, without: [
        _shown(field, table, prefix) for field in JOB if field.postgres not in without
    ]


def _shown(field: JobField, table: Table, prefix: str) -> str:
    collated = ' COLLATE "C"' if field.kind is NAME else ""
    if field.kind is RANK:
        return f"-{prefix}{field.postgres} AS {field.name}"
    if field.name == "payload_json":
        large = f"SELECT p.body FROM rota.payloads AS p WHERE p.job = {prefix}id"
        return f"coalesce({prefix}payload, ({large})) AS payload"
    if table in field.tables:
        return f"{prefix}{field.postgres}"
    if field.name == "state":
        return f"'{(table.name or '').lower()}'::text{collated} AS state"
    if field.default is not None:
        return f"{field.default} AS {field.postgres}"
    return f"NULL::{field.kind.postgres}{collated} AS {field.postgres}"


# The parts of a job that a claim returns; what it leaves out, the claimer knows. Instants that are
# mostly equal come as text, to be read once; payload is NULL in the row if it is large.
CLAIMED_APART = ("run_at", "created_at", "payload_json")
CLAIMED = (
    *(f for f in CARRIED if f.name not in (*CLAIMED_APART, "started_at")),
    *(f for f in FIELDS if f.name == "cancel_requested"),
)

LISTS: Mapping[str, ColumnList] = {
    # the definitions of the tables
    "queued columns": _definitions(QUEUED),
    "running columns": _definitions(RUNNING),
    "done columns": _definitions(DONE),
    # what moves along between them
    "carried": _names(CARRIED),
    "carried types": _typed((field.postgres, field.kind.postgres) for field in CARRIED),
    # a new job: the columns of its options, their values in its JSON, and the JSON itself
    "options": _names(OPTIONS),
    "options types": _typed((field.postgres, field.kind.postgres) for field in OPTIONS),
    "options given": _given,
    "new types": _typed((field.name, "text" if field.kind is JSON else field.kind.postgres) for field in NEW),
    # a claimed job
    "claimed": _names(CLAIMED),
    "claimed types": _typed((field.postgres, field.kind.postgres) for field in CLAIMED),
    # a job as the views show it
    "queued job": _job(QUEUED),
    "running job": _job(RUNNING),
    "done job": _job(DONE),
    "large": _constant(LARGE),
    # segments of due jobs; how many entries of rows that are gone this session has met in an index
    "newest segment": lambda _, __: [NEWEST_SEGMENT],
    "sees newest": lambda _, __: [SEES_NEWEST],
    "tally slot": lambda _, __: [TALLY_SLOT],
    "run days": _constant(KEPT_RUN_DAYS),
    "large running": _constant(LARGE_RUNNING),
    "many dead": _constant(MANY_DEAD),
    "strays lock": _constant(STRAYS_LOCK),
    "dead due": _met("queued_due"),
    "dead later": _met("queued_later"),
    "live due": _fetched("queued_due"),
    # lanes and rules
    "line lane": _line_lane,
    "freed lanes": lambda _, __: [FREED_LANES],
    "tokens": _tokens,
    "many tenants": lambda _, __: [MANY_TENANTS],
    "many passed": _constant(MANY_PASSED),
    "round lanes": _constant(ROUND_LANES),
    "fair claim": _constant(FAIR_CLAIM),
    "rules lock": _constant(RULES_LOCK),
    # what may be said about a job
    "conflicts": lambda _, __: [f"'{choice}'" for choice in CONFLICTS],
    "longest name": _constant(LONGEST_NAME),
    "most attempts": _constant(MOST_ATTEMPTS),
    "largest priority": _constant(PRIORITY_LIMIT),
    "shortest timeout": _constant(SHORTEST_TIMEOUT),
    "longest timeout": _constant(int(LONGEST)),
    "most tags": _constant(MOST_TAGS),
    "most units": _constant(MOST_UNITS),
    "most cents": _constant(int(MOST_CENTS)),
    "longest key": _constant(int(FOREVER)),
}
