"""The fields of a job, declared once, with the type of each in both databases.

Owns the list. Tables, views, row readers and the column lists of every statement are rendered from it,
so a new field is one line here and one in ``model/job.py``. Must never hold a statement or a database.
"""

from __future__ import annotations

from enum import Flag, auto
from typing import NamedTuple

from ...model import Job, JobFilter, NewJob


class Kind(NamedTuple):
    """What a field holds. Each store has one way to read and one way to write a kind."""

    name: str
    postgres: str
    sqlite: str


ID = Kind("id", "uuid", "TEXT")
NAME = Kind("name", "text", "TEXT")
INSTANT = Kind("instant", "timestamptz", "INTEGER")  # on SQLite: microseconds since 1970 in UTC
COUNTER = Kind("counter", "bigint", "INTEGER")
WHOLE = Kind("whole", "integer", "INTEGER")
RANK = Kind("rank", "integer", "INTEGER")  # minus the priority, so that the claim order ascends
REAL = Kind("real", "double precision", "REAL")
FLAG = Kind("flag", "boolean", "INTEGER")
JSON = Kind("json", "json", "TEXT")
BACKOFF = Kind("backoff", "json", "TEXT")
TAGS = Kind("tags", "text[]", "TEXT")


class Table(Flag):
    """The tables of PostgreSQL, where the state of a job is the table it is in."""

    QUEUED = auto()
    RUNNING = auto()
    DONE = auto()
    NONE = 0
    ALL = QUEUED | RUNNING | DONE


QUEUED, RUNNING, DONE, NONE, ALL = Table.QUEUED, Table.RUNNING, Table.DONE, Table.NONE, Table.ALL


class JobField(NamedTuple):
    name: str  # in ``model.Job``
    kind: Kind
    default: str | None = None  # of a new job, as an SQL literal
    null: Table = NONE  # where it may be NULL
    tables: Table = ALL  # ALL: it is carried along when a job moves from table to table

    @property
    def postgres(self) -> str:
        return "rank" if self.kind is RANK else self.name.removesuffix("_json")

    @property
    def sqlite(self) -> str:
        if self.kind in (BACKOFF, TAGS):
            return f"{self.name}_json"
        return "rank" if self.kind is RANK else self.name


# In the order of PostgreSQL's columns: fixed widths first, which saves padding; then what may be NULL;
# then what only some of the tables have.
FIELDS = (
    JobField("id", ID),
    JobField("created_at", INSTANT),
    JobField("run_at", INSTANT),
    JobField("lease_token", COUNTER, "0"),
    JobField("priority", RANK, "0"),
    JobField("attempt", WHOLE, "0"),
    JobField("max_attempts", WHOLE, "3"),
    JobField("auto_remove", FLAG, "false"),
    JobField("tenant", NAME, "'default'"),
    JobField("queue", NAME, "'default'"),
    JobField("task", NAME),
    JobField("origin", NAME, "'api'"),
    JobField("payload_json", JSON, null=ALL),  # NULL: it is large, and kept in rota.payloads
    JobField("cost_cents", REAL, null=ALL),  # NULL: 0
    JobField("timeout", REAL, null=ALL),
    JobField("started_at", INSTANT, null=ALL),
    JobField("scheduled_for", INSTANT, null=ALL),
    JobField("schedule", NAME, null=ALL),
    JobField("key", NAME, null=ALL),
    JobField("tags", TAGS, null=ALL),
    JobField("parent", ID, null=ALL),
    JobField("backoff", BACKOFF, null=ALL),
    JobField("error_json", JSON, null=ALL),
    JobField("progress_json", JSON, null=ALL),
    JobField("crashes", WHOLE, null=ALL),  # NULL: 0
    JobField("expires_at", INSTANT, null=ALL),
    JobField("keep", REAL, null=ALL),
    JobField("snoozes", WHOLE, null=ALL),  # NULL: 0
    JobField("concurrency_key", NAME, null=ALL),
    JobField("units", WHOLE, null=ALL),  # NULL: 1
    JobField("price", REAL, null=ALL),
    JobField("state", NAME, tables=DONE),
    JobField("finished_at", INSTANT, tables=DONE),
    JobField("worker", NAME, tables=RUNNING | DONE, null=DONE),
    JobField("lease_until", INSTANT, tables=RUNNING),
    JobField("cancel_requested", FLAG, "false", tables=QUEUED | RUNNING),
    JobField("output_json", JSON, tables=DONE, null=DONE),
)

BY_NAME = {field.name: field for field in FIELDS}
JOB = tuple(BY_NAME[name] for name in Job.__struct_fields__)  # in the order in which a Job is made
CARRIED = tuple(field for field in FIELDS if field.tables is ALL)
NEW = tuple(field for field in FIELDS if field.name in NewJob.__struct_fields__)
# What a new job may say beyond what every insert treats by itself.
OPTIONS = tuple(field for field in NEW if field.name not in ("id", "payload_json", "run_at", "priority"))
# What a filter compares with one value; where most jobs have none, the filter finds few by an index. A
# concurrency key has none: it is asked for with a state.
COMPARED = tuple(field for field in FIELDS if field.name in JobFilter.__struct_fields__)
NARROW = tuple(field for field in COMPARED if field.null is ALL and field.name != "concurrency_key")
