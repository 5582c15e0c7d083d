"""The statements of this store, read once from the ``.sql`` files beside this module."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ...model import AuditEntry, Schedule

# The order that ``rows.job`` reads.
JOB = (
    "id, task, state, queue, tenant, rank, payload_json, output_json, error_json, attempt, max_attempts, "
    "token, run_at, created_at, started_at, finished_at, lease_until, worker, timeout, backoff_json, key, "
    "auto_remove, tags_json, parent, origin, schedule, scheduled_for, cost_cents, progress_json, "
    "cancel_requested"
)
BRIEF = JOB.replace(" payload_json, output_json,", " '{}', NULL,")
# In these the jobs of a batch differ; in the others they are mostly alike.
OWN = ("id", "payload_json", "run_at", "created_at")
SHARED = tuple(column for column in JOB.split(", ") if column not in OWN)
# The columns of a schedule, and of a line of the audit log, are its fields.
SCHEDULE = Schedule.__struct_fields__
AUDIT = AuditEntry.__struct_fields__


@cache
def statement(name: str) -> str:
    """The text of ``sql/<name>.sql``."""
    text = files(__package__).joinpath("sql", f"{name}.sql").read_text("utf-8")
    for name, fields in (("schedule", SCHEDULE), ("audit", AUDIT)):
        text = text.replace(f"{{{name}_values}}", ", ".join("?" * len(fields)))
        text = text.replace(f"{{{name}}}", ", ".join(fields))
    text = text.replace("{job}", JOB).replace("{own}", ", ".join(OWN)).replace("{shared}", ", ".join(SHARED))
    return text.strip()


@cache
def insert_one(columns: tuple[str, ...]) -> str:
    """``insert.sql`` for one job that fills these columns, and then its OWN."""
    marks = ", ".join("?" * len(columns + OWN))
    return _insert(columns, f"('queued', {marks})")  # plain marks, for other drivers have other styles


@cache
def insert_many(shared: tuple[str, ...], rows: int) -> str:
    """The same for many: first come the values that they share, then each one's OWN."""
    marks = [f"?{n + 1}" for n in range(len(shared) + len(OWN) * rows)]
    given, own = marks[: len(shared)], iter(marks[len(shared) :])
    lines = [f"('queued', {', '.join((*given, *each))})" for each in zip(*[own] * len(OWN), strict=True)]
    return _insert(shared, ",\n  ".join(lines))


def _insert(columns: tuple[str, ...], rows: str) -> str:
    return statement("insert").replace("{columns}", ", ".join(columns + OWN)).replace("{rows}", rows)
