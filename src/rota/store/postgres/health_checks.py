"""What ``rota doctor`` asks a PostgreSQL server: schema, dead rows, what holds back vacuum, room to connect.

Owns the questions and the remedies. Must never change anything, nor raise for what the role may not
see: that is a finding of its own. An unreachable server is raised as usual.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from ...errors import RotaError, SchemaMismatch, StoreUnavailable
from ...model import Finding, Level
from . import schema
from .connection_probes import encryption, wake_ups
from .connections import Connections
from .rules import check_rules
from .url import PostgresUrl

LONG_S = 60.0  # a transaction that holds back vacuum for longer is worth a word
TOO_LONG_S = 3600.0
OLD_XIDS = 100_000  # transactions a replication slot may be behind
MANY_DEAD = 200_000  # rows; a busy queue leaves fewer between two vacuums
LARGE_INDEXES = 64 * 2**20  # bytes; smaller ones do not matter
BLOATED_ROW = 1000  # bytes of indexes per row; a sound table has about 200
FULL = 0.8  # of the server's connections
MANY_UNUSED = 0.5  # of the server's connections; rota's own that no one has used for a while
UNUSED_S = 60.0
STRAYS = 10_000  # finished jobs counted in the default partition
HOT = ["attempts", "documents", "keys", "queued", "running", "schedules", "tally"]

_INDEX = re.compile(r"(?:CREATE (?:UNIQUE )?INDEX |DROP INDEX rota\.)(\w+)(?: ON rota\.[^;]+)?;")
_INDEXES = """
SELECT c.relname, i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
 WHERE c.relnamespace = to_regnamespace('rota')
"""
_TABLES = """
SELECT relname, n_live_tup, n_dead_tup, greatest(last_vacuum, last_autovacuum), pg_indexes_size(relid),
       pg_size_pretty(pg_total_relation_size(relid))
  FROM pg_stat_user_tables WHERE schemaname = 'rota' AND relname = ANY (%s) ORDER BY relname
"""
# A session that reads or writes keeps every row that it might still see.
_SESSIONS = """
SELECT pid, usename, application_name, extract(epoch FROM clock_timestamp() - xact_start)::float8
  FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
   AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
   AND xact_start <= clock_timestamp() - make_interval(secs => %s)
 ORDER BY xact_start LIMIT 10
"""
_PREPARED = """
SELECT gid, owner, extract(epoch FROM clock_timestamp() - prepared)::float8 FROM pg_prepared_xacts
 WHERE database = current_database() AND prepared <= clock_timestamp() - make_interval(secs => %s)
 ORDER BY prepared LIMIT 10
"""
_SLOTS = "SELECT slot_name, age(xmin), active FROM pg_replication_slots WHERE age(xmin) >= %s ORDER BY 2 DESC"
_SEES_ALL = "SELECT pg_has_role('pg_read_all_stats', 'MEMBER'), current_user"
_BUDGET = """
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
       (SELECT coalesce(sum(numbackends), 0)::int FROM pg_stat_database)
"""
# One row per machine that programs with rota run on, the one with most connections first.
_OURS = """
SELECT coalesce(host(client_addr), 'local'), count(*),
       count(*) FILTER (WHERE state = 'idle' AND state_change < clock_timestamp() - make_interval(secs => %s)
                              AND query NOT ILIKE 'listen%')
  FROM pg_stat_activity WHERE application_name = current_setting('application_name')
 GROUP BY 1 ORDER BY 2 DESC, 1
"""
_STRAYS = "SELECT count(*) FROM (SELECT FROM rota.done_default WHERE keep IS NULL LIMIT %s) AS d"
_LAST_DAY = "SELECT max(day) FROM rota.days"

Check = Callable[[Connections, PostgresUrl, datetime], Awaitable[Sequence[Finding]]]


async def check_health(connections: Connections, address: PostgresUrl, now: datetime) -> list[Finding]:
    found: list[Finding] = []
    for name, check in CHECKS.items():
        try:
            found += await check(connections, address, now)
        except StoreUnavailable:
            raise
        except RotaError as error:
            remedy = "let a role that may see it look: the owner of the schema, or a member of pg_monitor"
            text = f"could not be looked at: {error}"
            found.append(Finding(check=name, level="warning", text=text, remedy=remedy))
    return found


async def _schema(connections: Connections, address: PostgresUrl, now: datetime) -> list[Finding]:
    try:
        await schema.require_current(connections, address.shown)
    except SchemaMismatch as error:
        said, _, remedy = str(error).rpartition(": ")
        return [Finding(check="schema", level="problem", text=said, remedy=remedy)]
    return [Finding(check="schema", level="ok", text=f"{schema.MIGRATIONS[-1].name} is current")]


async def _server(connections: Connections, address: PostgresUrl, now: datetime) -> list[Finding]:
    ((version, vacuums),) = await connections.rows(
        "SELECT current_setting('server_version'), current_setting('autovacuum')"
    )
    found = [Finding(check="server", level="ok", text=f"PostgreSQL {version}")]
    if vacuums != "on":
        remedy = "set autovacuum = on in the server's configuration"
        text = "autovacuum is off: the tables grow with every job and claims become slow"
        found.append(Finding(check="server", level="problem", text=text, remedy=remedy))
    return found


async def _indexes(connections: Connections, address: PostgresUrl, now: datetime) -> list[Finding]:
    there: dict[str, bool] = {row[0]: row[1] for row in await connections.rows(_INDEXES)}
    found = []
    last = {made[1]: made for one in schema.MIGRATIONS for made in _INDEX.finditer(one.sql)}
    for made in (made for made in last.values() if made[0].startswith("CREATE")):
        if made[1] not in there:
            text = f"index rota.{made[1]} is missing: what it serves reads whole tables"
            found.append(
                Finding(check="indexes", level="problem", text=text, remedy=" ".join(made[0].split()))
            )
    for name in sorted(name for name, is_valid in there.items() if not is_valid):
        is_leftover = re.search(r"_cc(new|old)\d*$", name)  # of a REINDEX CONCURRENTLY that was broken off
        remedy = f"{'DROP INDEX' if is_leftover else 'REINDEX INDEX'} CONCURRENTLY rota.{name};"
        text = f"index rota.{name} is invalid: it is paid for but never used"
        found.append(Finding(check="indexes", level="problem", text=text, remedy=remedy))
    return found or [Finding(check="indexes", level="ok", text="all are there and valid")]


async def _tables(connections: Connections, address: PostgresUrl, now: datetime) -> list[Finding]:
    return [_table(*row) for row in await connections.rows(_TABLES, (HOT,))]


def _table(name: str, live: int, dead: int, vacuumed_at: datetime | None, indexes: int, size: str) -> Finding:
    last = f"{vacuumed_at:%Y-%m-%d %H:%M:%S} UTC" if vacuumed_at else "never"
    text = f"rota.{name}: about {live} rows and {dead} dead ones in {size}, last vacuum {last}"
    level: Level = "warning"
    remedy: str | None = None
    if dead >= MANY_DEAD and dead > live:
        remedy = f"end what holds back vacuum (see long transactions), then VACUUM rota.{name};"
    elif indexes >= LARGE_INDEXES and indexes > BLOATED_ROW * max(live, 1):
        remedy = f"its indexes are mostly empty pages: REINDEX TABLE CONCURRENTLY rota.{name};"
    else:
        level = "ok"
    return Finding(check="dead rows", level=level, text=text, remedy=remedy)


async def _transactions(connections: Connections, address: PostgresUrl, now: datetime) -> list[Finding]:
    found = []
    for pid, user, program, age in await connections.rows(_SESSIONS, (LONG_S,)):
        who = f"transaction of pid {pid} (user {_plain(user)}, application {_plain(program) or 'unnamed'})"
        remedy = f"end it where it was begun, or SELECT pg_terminate_backend({pid});"
        found.append(_holds_back(who, age, remedy))
    for gid, owner, age in await connections.rows(_PREPARED, (LONG_S,)):
        remedy = f"COMMIT PREPARED or ROLLBACK PREPARED '{_plain(gid)}';"
        found.append(_holds_back(f"prepared transaction {_plain(gid)} (user {_plain(owner)})", age, remedy))
    for slot, age, is_active in await connections.rows(_SLOTS, (OLD_XIDS,)):
        text = f"replication slot {_plain(slot)} keeps the dead rows of {age} transactions"
        wait = "let its reader catch up" if is_active else "it has no reader: start one"
        remedy = f"{wait}, or SELECT pg_drop_replication_slot('{_plain(slot)}');"
        found.append(Finding(check="long transactions", level="warning", text=text, remedy=remedy))
    ((sees_all, role),) = await connections.rows(_SEES_ALL)
    if not sees_all:
        text = f"the role {_plain(role)} sees its own sessions only: others may hold back vacuum"
        remedy = f'GRANT pg_read_all_stats TO "{_plain(role)}";'
        found.append(Finding(check="long transactions", level="warning", text=text, remedy=remedy))
    return found or [Finding(check="long transactions", level="ok", text="none holds back vacuum")]


def _holds_back(who: str, age: float, remedy: str) -> Finding:
    text = f"{who} has been open for {timedelta(seconds=round(age))}: vacuum removes nothing that died since"
    level: Level = "problem" if age >= TOO_LONG_S else "warning"
    return Finding(check="long transactions", level=level, text=text, remedy=remedy)


async def _budget(connections: Connections, address: PostgresUrl, now: datetime) -> list[Finding]:
    ((most, used),) = await connections.rows(_BUDGET)
    machines = await connections.rows(_OURS, (UNUSED_S,))
    ours, unused = sum(row[1] for row in machines), sum(row[2] for row in machines)
    text = f"{used} of {most} connections are in use, {ours} of them by rota"
    if len(machines) > 1:
        text += f" ({', '.join(f'{machine}: {count}' for machine, count, _ in machines[:5])})"
    if unused > MANY_UNUSED * most:
        text += f", of which {unused} have been idle for {UNUSED_S:g} s or more"
        remedy = (
            "let programs share one app and one event loop, and close apps that are no longer used; "
            "?connections=1 in the URL limits each (docs/reference/store-urls.md)"
        )
        return [Finding(check="connections", level="warning", text=text, remedy=remedy)]
    if used < FULL * most:
        return [Finding(check="connections", level="ok", text=text)]
    remedy = "raise max_connections, or put a pooler between (docs/howto/poolers.md)"
    return [Finding(check="connections", level="warning", text=text, remedy=remedy)]


async def _history(connections: Connections, address: PostgresUrl, now: datetime) -> list[Finding]:
    ((strays,),) = await connections.rows(_STRAYS, (STRAYS,))
    ((last,),) = await connections.rows(_LAST_DAY)
    found = []
    owner = "let a worker run whose role owns the schema rota: its upkeep makes the days ahead"
    if last is None or last < now + timedelta(days=1):
        text = "history has no partition for tomorrow: jobs will end in rota.done_default"
        found.append(Finding(check="history", level="warning", text=text, remedy=owner))
    if strays:
        many = f"{strays} or more" if strays == STRAYS else strays
        text = f"rota.done_default holds {many} finished jobs of days without a partition: slower to prune"
        remedy = f"retention deletes them; if their number grows, {owner}"
        found.append(Finding(check="history", level="warning", text=text, remedy=remedy))
    return found or [Finding(check="history", level="ok", text=f"partitions reach to {last:%Y-%m-%d}")]


async def _rules(connections: Connections, address: PostgresUrl, now: datetime) -> list[Finding]:
    return await check_rules(connections)


async def _encryption(connections: Connections, address: PostgresUrl, now: datetime) -> list[Finding]:
    return encryption(address)


async def _wake_ups(connections: Connections, address: PostgresUrl, now: datetime) -> list[Finding]:
    return [await wake_ups(connections, address)]


def _plain(text: str | None) -> str:
    """Names are other people's: no line breaks, no escape sequences, no quotes out of place."""
    return "".join(c for c in text or "" if c.isprintable()).replace("'", "''")


CHECKS: dict[str, Check] = {
    "schema": _schema,
    "server": _server,
    "indexes": _indexes,
    "dead rows": _tables,
    "long transactions": _transactions,
    "history": _history,
    "rules": _rules,
    "connections": _budget,
    "wake-ups": _wake_ups,
    "encryption": _encryption,
}
