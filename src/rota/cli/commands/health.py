"""``rota health``: one status for people and probes. Exit 0 healthy, 1 degraded, 3 unreachable, 4 schema."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from ...core.plurals import plural
from ...errors import SchemaMismatch, StoreUnavailable
from ...operate import Operations
from ...operate.views import GateView, Stats
from ...terminal.text import json_text, safe, short_duration, style
from ..parts.exit_codes import FAILED, SCHEMA, UNREACHABLE
from ..parts.options import json_option
from ..parts.target import Target, pass_target, target_options
from ..parts.unserved import unserved_lines, unserved_tasks

CODES = {"healthy": 0, "degraded": FAILED, "unreachable": UNREACHABLE, "schema": SCHEMA}
COLOURS = {"healthy": "green", "degraded": "yellow"}


@click.command()
@click.option("--late-after", type=click.FloatRange(0), default=300.0, show_default=True, metavar="SECONDS",
              help="Degraded if a job has been due for longer than this.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(0.1), default=10.0, show_default=True, metavar="SECONDS",
              help="Unreachable if there is no response within this time.")  # fmt: skip
@json_option("status", "problems", "store", "workers", "oldest_due_s", "paused", "unserved")
@target_options
@pass_target
def health(target: Target, late_after: float, timeout: float, as_json: bool) -> None:
    """Check that the store is reachable, its schema current and a worker running.

    Exit codes: 0 healthy, 1 degraded, 3 unreachable, 4 schema out of date.
    """
    report: dict[str, Any] = {"status": "healthy", "problems": [], "store": target.place()}
    try:
        target.operations(lambda operations: examine(operations, late_after, timeout, report))
    except SchemaMismatch as error:
        report |= {"status": "schema", "problems": [str(error)]}
    except StoreUnavailable as error:
        report |= {"status": "unreachable", "problems": [str(error)]}
    except TimeoutError:
        report |= {"status": "unreachable", "problems": [f"no response within {timeout:g} s"]}
    click.echo(json_text(report) if as_json else _text(report))
    raise SystemExit(CODES[report["status"]])


async def examine(operations: Operations, late_after: float, timeout: float, report: dict[str, Any]) -> None:
    """Fill in the report."""
    async with asyncio.timeout(timeout):
        stats = await operations.system.stats()
        workers = (await operations.system.workers()).items
        report["workers"] = sum(worker.state != "lost" for worker in workers)
        report["oldest_due_s"] = stats.oldest_due_s
        report["paused"] = stats.paused
        report["unserved"] = await unserved_tasks(operations)
        gates = (await operations.gates.list()).items
    report["problems"] = _problems(report, _late(stats, gates, late_after))
    report["status"] = "degraded" if report["problems"] else "healthy"


def _late(stats: Stats, gates: Sequence[GateView], late_after: float) -> list[str]:
    """Why jobs start late: the pauses that hold them back, else only that they do."""
    if stats.oldest_due_s is None or stats.oldest_due_s <= late_after:
        return []
    limit = f"(the limit is {short_duration(late_after)})"
    if any(gate.scope == "all" for gate in gates):  # reported already
        return [
            f"a job has been due for {short_duration(stats.oldest_due_s)} {limit}, as everything is paused"
        ]
    paused = {gate.name: gate for gate in gates if gate.scope == "queue"}
    late = {
        name: depth.oldest_due_s for name, depth in stats.queues.items() if depth.oldest_due_s is not None
    }
    lines, others = [], [age for name, age in late.items() if name not in paused]
    for name, gate in paused.items():
        if (age := late.get(name or "", 0.0)) > late_after:
            by = f"by {gate.actor}" + (f": {gate.reason}" if gate.reason else "")
            lines.append(
                f"a job in queue {name} has been due for {short_duration(age)}: the queue is paused {by}"
            )
    if max(others, default=0.0) > late_after or not lines:
        narrow = [f"{gate.scope} {gate.name}" for gate in gates if gate.scope in ("task", "tenant")]
        perhaps = f"; {', '.join(narrow)} {'is' if len(narrow) == 1 else 'are'} paused" if narrow else ""
        age = max(others, default=stats.oldest_due_s)
        lines.append(f"a job has been due for {short_duration(age)} {limit}{perhaps}")
    return lines


def _problems(report: dict[str, Any], late: Sequence[str]) -> list[str]:
    problems = []
    if report["paused"]:
        problems.append("everything is paused: no job starts until rota resume")
    if not report["workers"]:
        problems.append("no worker is running: start one with rota worker --app MODULE:APP")
    problems += late
    if report["workers"]:  # without a worker no task is served, as reported above
        problems += unserved_lines(report["unserved"])
    return problems


def _text(report: dict[str, Any]) -> str:
    status = report["status"]
    lines = [f"{style(status, COLOURS.get(status, 'red'), bold=True)}  {safe(report['store'])}"]
    lines += [f"  {style('!', 'yellow')} {safe(problem)}" for problem in report["problems"]]
    if "workers" in report:
        oldest = report["oldest_due_s"]
        due = "no job is due" if oldest is None else f"oldest due job: {short_duration(oldest)}"
        lines.append(f"  schema current, {plural(report['workers'], 'worker')} running, {due}")
    return "\n".join(lines)
