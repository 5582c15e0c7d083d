"""The statements of this store, read once from the ``.sql`` files beside this module.

Owns what their placeholders stand for: the column lists are rendered from the fields of a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

import msgspec

from ...model import AuditEntry, AuditSeal, Job, Schedule
from ..sql import fields
from ..sql.fields import FIELDS, NARROW, OPTIONS, JobField
from ..sql.templates import ColumnList, render

# The columns of a job, in the order in which a Job is made and ``rows.job`` reads them.
COLUMNS = tuple(field.sqlite for field in fields.JOB)
JOB = ", ".join(COLUMNS)
_BRIEF = {"payload_json": "'{}'", "output_json": "NULL"}
BRIEF = ", ".join(_BRIEF.get(column, column) for column in COLUMNS)
# In these the jobs of a batch differ; in the others they are mostly alike.
OWN = ("id", "payload_json", "run_at", "created_at")
# In these they may differ, where many tenants or keys are served.
VARIED = ("tenant", "concurrency_key")
SHARED = tuple(column for column in COLUMNS if column not in OWN + VARIED)
# The columns of a schedule, and of a line of the audit log, are its fields.
SCHEDULE = Schedule.__struct_fields__
AUDIT = AuditEntry.__struct_fields__
SEAL = AuditSeal.__struct_fields__

# What may be large comes last: to reach a column, SQLite reads all before it.
_IN_TABLE = sorted(FIELDS, key=lambda field: field.kind.name == "json")
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Job)}
# A change may be carried out only while its job runs, under its token, held by its worker.
_HELD = (
    "held.state = 'running' AND held.lease_token = json_extract(change.value, '$[0]') "
    "AND held.worker = json_extract(change.value, '$[1]')"
)
# What a claim under rules has to know of a job; ``allowances.Met`` has the same order.
MET = (
    "rank", "run_at", "id", "rowid", "tenant", "queue", "task", "lane", "concurrency_key", "units", "price",
    "attempt", "due",
)  # fmt: skip
MET_BRIEFLY = MET[:5]  # enough where there are no limits
# The lane of a job in the line: '' if it can be reached by its tenant, as soon as there is more than one.
_MANY_TENANTS = (
    "((SELECT fair FROM rota_claiming) OR EXISTS (SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_tenants "
    "WHERE state = 'queued' AND due = 1 AND lane IS NOT NULL))"
)

# The queues and ranks in which jobs can be reached by their tenants, as the place of one job each; and those
# jobs.
_STRANDS = """strand (place) AS (
  SELECT (
    SELECT rowid FROM rota_jobs INDEXED BY rota_jobs_tenants
    WHERE state = 'queued' AND due = 1 AND lane IS NOT NULL ORDER BY queue, rank LIMIT 1
  )
  UNION ALL
  SELECT coalesce(
    (
      SELECT beside.rowid FROM rota_jobs AS beside INDEXED BY rota_jobs_tenants
      WHERE beside.state = 'queued' AND beside.due = 1 AND beside.lane IS NOT NULL
        AND beside.queue = seen.queue AND beside.rank > seen.rank
      ORDER BY beside.queue, beside.rank LIMIT 1
    ),
    (
      SELECT beyond.rowid FROM rota_jobs AS beyond INDEXED BY rota_jobs_tenants
      WHERE beyond.state = 'queued' AND beyond.due = 1 AND beyond.lane IS NOT NULL
        AND beyond.queue > seen.queue
      ORDER BY beyond.queue, beyond.rank LIMIT 1
    )
  )
  FROM strand JOIN rota_jobs AS seen ON seen.rowid = strand.place
)"""
_STRAND_JOBS = """strand JOIN rota_jobs AS seen ON seen.rowid = strand.place
       CROSS JOIN rota_jobs AS waits INDEXED BY rota_jobs_tenants
       ON waits.state = 'queued' AND waits.due = 1 AND waits.lane IS NOT NULL
       AND waits.queue = seen.queue AND waits.rank = seen.rank"""


def _laned(prefix: str, without: frozenset[str]) -> list[str]:
    return [f"iif({prefix}tenant <> 'default' OR {_MANY_TENANTS}, '', NULL)"]


def _names(columns: Iterable[str]) -> ColumnList:
    listed = list(columns)
    return lambda prefix, without: [f"{prefix}{column}" for column in listed if column not in without]


def _marks(columns: Iterable[str]) -> ColumnList:
    listed = list(columns)
    return lambda _, without: ["?" for column in listed if column not in without]


def _definition(field: JobField) -> str:
    """NOT NULL and a default as ``model.Job`` says; no tags are NULL."""
    default = _DEFAULTS[field.name]
    required = "" if default is None or default == () else " NOT NULL"
    number = f" DEFAULT {default + 0:g}" if isinstance(default, int | float) else ""
    return f"{field.sqlite} {field.kind.sqlite}{required}{number}"


def _index(field: JobField) -> str:
    name = field.sqlite
    return f"CREATE INDEX rota_jobs_{name} ON rota_jobs ({name}, id) WHERE {name} IS NOT NULL;"


LISTS: Mapping[str, ColumnList] = {
    "job columns": lambda _, without: [_definition(f) for f in _IN_TABLE if f.sqlite not in without],
    "narrow indexes": lambda _, __: ["\n".join(_index(field) for field in NARROW)],
    "job": _names(COLUMNS),
    "own": _names(OWN + VARIED),
    "shared": _names(SHARED),
    "options": _names(field.sqlite for field in OPTIONS),
    "options values": _marks(field.sqlite for field in OPTIONS),
    "schedule": _names(SCHEDULE),
    "schedule values": _marks(SCHEDULE),
    "audit": _names(AUDIT),
    "audit values": _marks(AUDIT),
    "seal": _names(SEAL),
    "seal values": _marks(SEAL),
    "held": lambda _, __: [_HELD],
    "met": _names(MET),
    "met briefly": _names(MET_BRIEFLY),
    "laned": _laned,
    "strands": lambda _, __: [_STRANDS],
    "strand jobs": lambda _, __: [_STRAND_JOBS],
}


def fill(template: str) -> str:
    """The template with its column lists."""
    return render(template, LISTS)


def names() -> list[str]:
    """Of all statements."""
    found = (entry.name for entry in files(__package__).joinpath("sql").iterdir())
    return sorted(name.removesuffix(".sql") for name in found if name.endswith(".sql"))


@cache
def statement(name: str) -> str:
    """The text of ``sql/<name>.sql``."""
    return fill(files(__package__).joinpath("sql", f"{name}.sql").read_text("utf-8")).strip()


@cache
def insert_one(columns: tuple[str, ...]) -> str:
    """``insert.sql`` for one job that fills these columns, and then its OWN."""
    marks = ", ".join("?" * len(columns + OWN))  # plain marks, for other drivers have other styles
    return _insert(columns, f"VALUES ('queued', {_lane_of_new(columns)}{marks})")


@cache
def insert_many(shared: tuple[str, ...], rows: int) -> str:
    """The same for many: first come the values that they share, then each one's OWN."""
    alike, own = ", ".join("?" * len(shared)), ", ".join("?" * len(OWN))
    lines = ",\n  ".join([f"({own})"] * rows)
    # WHERE, or SQLite would read ON CONFLICT as the ON of a join.
    together = f"(SELECT 'queued', {_lane_of_new(shared)}{alike}) CROSS JOIN (VALUES {lines})"
    return _insert(shared, f"SELECT * FROM {together} WHERE true")


@cache
def insert_varied(shared: tuple[str, ...], rows: int) -> str:
    """The same for many of several tenants or keys: each one's OWN, then what is VARIED."""
    alike, own = ", ".join(["?"] * len(shared)), ", ".join("?" * len(OWN + VARIED))
    lines = ",\n  ".join([f"({own})"] * rows)
    lane = f"iif(each.column{len(OWN) + 1} <> 'default' OR {_MANY_TENANTS}, '', NULL)"
    selected = f"SELECT 'queued', {lane}, alike.*, each.*"
    together = f"(SELECT {alike}) AS alike CROSS JOIN (VALUES {lines}) AS each"
    return _insert(shared, f"{selected} FROM {together} WHERE true", OWN + VARIED)


def _lane_of_new(columns: tuple[str, ...]) -> str:
    """Of a job of the default tenant; the others say theirs."""
    return "" if "lane" in columns else f"iif({_MANY_TENANTS}, '', NULL), "


def _insert(columns: tuple[str, ...], rows: str, own: tuple[str, ...] = OWN) -> str:
    listed = columns if "lane" in columns else ("lane", *columns)
    return statement("insert").replace("[columns]", ", ".join(listed + own)).replace("[rows]", rows)
