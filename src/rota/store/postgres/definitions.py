"""The definitions that a database of ours has: functions, views and the columns of tables.

Owns how our own SQL files are read, so that what they define can be compared with what the server's
catalog says. Must never do I/O beyond the package's own files. Functions are code: they have no
version, and are replaced whole when they differ.
"""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from typing import NamedTuple

from ..sql.fields import JOB
from ..sql.migrations import discover
from .columns import fill

FIRST = ("ids", "triggers", "newest_segment")  # the tables use these functions

_FUNCTION = re.compile(
    r"CREATE FUNCTION rota\.(?P<name>\w+)\((?P<arguments>[^)]*)\)\s+"
    r"(?:RETURNS (?P<result>[^$]+?)\s+)?"
    r"LANGUAGE (?P<language>\w+)(?: (?P<volatility>IMMUTABLE|STABLE|VOLATILE))?"
    r"(?P<parallel> PARALLEL SAFE)?\n"
    r"(?P<settings>(?:SET [^\n]+\n)+)"
    r"AS \$\$(?P<body>.*?)\$\$;",
    re.DOTALL,
)
_VIEW = re.compile(r"CREATE VIEW rota\.(?P<name>\w+) AS\s+(?P<query>SELECT .*?);\n", re.DOTALL)
_COMMENT = re.compile(r"COMMENT ON (?:FUNCTION|VIEW) rota\.(\w+)(?:\([^)]*\))? IS\s+'((?:[^']|'')*)';")
_SETTING = re.compile(r'SET "?(\w+)"? = (.+?)(?= SET |\n)')
_TABLE = re.compile(r"CREATE (?:UNLOGGED )?TABLE rota\.(\w+) \(\n(.*?)\n\)", re.DOTALL)
_ADDED = re.compile(r"ALTER TABLE rota\.(\w+) ADD COLUMN ([^;]+);")
_COLUMN = re.compile(
    r"\s*(?!CONSTRAINT|PRIMARY|CHECK|--)(\w+) (.+?)"
    r"(?: COLLATE| NOT NULL| DEFAULT| PRIMARY| GENERATED|,| *--|$)"
)


class Function(NamedTuple):
    """``name`` and ``facts`` are as the catalog has them: see ``_FACTS`` in ``schema.py``."""

    name: str  # with the types of its arguments
    facts: str
    sql: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.facts.encode()).hexdigest()


class DatabaseView(NamedTuple):
    name: str
    query: str
    sql: str


def _read(name: str) -> str:
    return fill(files(__package__).joinpath("functions", f"{name}.sql").read_text("utf-8"))


def _files() -> tuple[str, ...]:
    names = sorted(entry.name for entry in files(__package__).joinpath("functions").iterdir())
    return tuple(name.removesuffix(".sql") for name in names if name.endswith(".sql"))


def _functions(text: str) -> list[Function]:
    comments = dict(_COMMENT.findall(text))
    return [_function(found, comments.get(found["name"])) for found in _FUNCTION.finditer(text)]


def _function(found: re.Match[str], comment: str | None) -> Function:
    arguments = [_argument(part) for part in _bare(found["arguments"]).split(", ") if part]
    identity = ", ".join(name_and_type for name_and_type, _ in arguments)
    outs = [one.split(" ", 2)[2] for one, _ in arguments if one.startswith(("OUT ", "INOUT "))]
    result = found["result"] or (outs[0] if len(outs) == 1 else "record")
    settings = [f"{name}={value.strip(chr(39))}" for name, value in _SETTING.findall(found["settings"])]
    facts = (
        ", ".join(one + default for one, default in arguments),
        re.sub(r"TABLE \( ?", "TABLE(", _bare(result)),
        found["language"],
        (found["volatility"] or "VOLATILE")[0].lower(),
        "s" if found["parallel"] else "u",
        ",".join(settings),
        (comment or "").replace("''", "'"),
        found["body"],
    )
    sql = found[0].replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1) + "\n"
    if comment is not None:
        sql += f"COMMENT ON FUNCTION rota.{found['name']} IS '{comment}';\n"
    return Function(f"{found['name']}({identity})", "\n".join(facts), sql)


def _argument(text: str) -> tuple[str, str]:
    """Name and type, and the default with the type that the catalog adds to texts and NULL."""
    name_and_type, said, value = text.partition(" DEFAULT ")
    if said and value[0] in "'N":
        value += "::" + name_and_type.partition(" ")[2]
    return name_and_type, said + value


def _canonical(text: str) -> str:
    """On one line, with the types as the catalog names them."""
    return re.sub(r"\btimestamptz\b", "timestamp with time zone", " ".join(text.split()))


def _bare(text: str) -> str:
    """The same, with our own types as the catalog names them."""
    return _canonical(text).replace("rota.", "")


def _views(text: str) -> list[DatabaseView]:
    comments = dict(_COMMENT.findall(text))
    return [
        DatabaseView(
            found["name"],
            found["query"],
            f"CREATE OR REPLACE VIEW rota.{found['name']} AS\n{found['query']};\n"
            f"COMMENT ON VIEW rota.{found['name']} IS '{comments[found['name']]}';\n",
        )
        for found in _VIEW.finditer(text)
    ]


def _columns() -> dict[str, str]:
    """The columns of each table, and of the views of jobs, as the catalog would list them."""
    text = PREAMBLE + "".join(migration.sql for migration in MIGRATIONS)
    columns = {name: [_column(line) for line in body.split("\n")] for name, body in _TABLE.findall(text)}
    for table, column in _ADDED.findall(text):
        columns[table].append(_column(column))
    found = {table: ", ".join(filter(None, listed)) for table, listed in columns.items()}
    shown = [f"{f.name.removesuffix('_json')} {_canonical(f.kind.postgres)}" for f in JOB]
    return found | dict.fromkeys(("live", "ended", "jobs"), ", ".join(shown))


def _column(line: str) -> str | None:
    found = _COLUMN.match(line)
    return None if found is None else f"{found[1]} {_canonical(found[2])}"


PREAMBLE = files(__package__).joinpath("schema.sql").read_text("utf-8")
MIGRATIONS = discover(__package__, "rota.migrations", fill)
_TEXTS = {name: _read(name) for name in _files()}
FIRST_FUNCTIONS = [function for name in FIRST for function in _functions(_TEXTS[name])]
FUNCTIONS = FIRST_FUNCTIONS + [f for name in _TEXTS if name not in FIRST for f in _functions(_TEXTS[name])]
VIEWS = _views(_TEXTS["views"])
COLUMNS = _columns()
# History needs partitions for its first days; upkeep makes all others.
FIRST_DAYS = """
SELECT rota.make_day(clock_timestamp() + make_interval(hours => 24 * d)) FROM generate_series(-1, 14) AS d;
"""


def as_text() -> str:
    """Everything, in an order in which an administrator can run it on an empty database.

    What is code, functions and views, can be run again on any other.
    """
    tables = [f"-- {migration.name}\n{migration.sql}" for migration in MIGRATIONS]
    code = {
        name: re.sub(r"(?m)^CREATE (FUNCTION|VIEW)", r"CREATE OR REPLACE \1", t) for name, t in _TEXTS.items()
    }
    after = [text for name, text in code.items() if name not in FIRST]
    return "\n".join([PREAMBLE, *(code[name] for name in FIRST), *tables, *after, FIRST_DAYS])
