"""The statements of this store, read once from the ``.sql`` files beside this module."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ...model import Schedule

# The order that ``rows.job`` reads.
JOB = (
    "id, task, state, queue, tenant, rank, payload_json, output_json, error_json, attempt, max_attempts, "
    "token, run_at, created_at, started_at, finished_at, lease_until, worker, timeout, backoff_json, key, "
    "auto_remove, tags_json, parent, origin, schedule, scheduled_for, cost_cents, progress_json, "
    "cancel_requested"
)
# The columns of a schedule are its fields.
SCHEDULE = Schedule.__struct_fields__


@cache
def statement(name: str) -> str:
    """The text of ``sql/<name>.sql``."""
    text = files(__package__).joinpath("sql", f"{name}.sql").read_text("utf-8")
    text = text.replace("{schedule_values}", ", ".join("?" * len(SCHEDULE)))
    return text.strip().replace("{job}", JOB).replace("{schedule}", ", ".join(SCHEDULE))
