"""``rota health``: one answer for people and probes. Exit 0 healthy, 1 degraded, 3 unreachable, 4 schema."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from ...errors import SchemaMismatch, StoreUnavailable
from ...operate import Operations
from ...terminal.text import json_text, plural, safe, short_duration, style
from ..parts.exit_codes import FAILED, SCHEMA, UNREACHABLE
from ..parts.target import Target, pass_target, target_options
from .stats import unserved, unserved_lines

CODES = {"healthy": 0, "degraded": FAILED, "unreachable": UNREACHABLE, "schema": SCHEMA}
COLOURS = {"healthy": "green", "degraded": "yellow"}


@click.command()
@click.option("--late-after", type=click.FloatRange(0), default=300.0, show_default=True, metavar="S",
              help="Degraded if a due job has waited longer than this.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(0.1), default=10.0, show_default=True, metavar="S",
              help="Unreachable if there is no answer by then.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The same as one object.")
@target_options
@pass_target
def health(target: Target, late_after: float, timeout: float, as_json: bool) -> None:
    """Is the store there, its schema current, and somebody at work?"""
    report: dict[str, Any] = {"status": "healthy", "problems": [], "store": target.place()}
    try:
        target.operations(lambda operations: examine(operations, late_after, timeout, report))
    except SchemaMismatch as error:
        report |= {"status": "schema", "problems": [str(error)]}
    except StoreUnavailable as error:
        report |= {"status": "unreachable", "problems": [str(error)]}
    except TimeoutError:
        report |= {"status": "unreachable", "problems": [f"no answer within {timeout:g} s"]}
    click.echo(json_text(report) if as_json else _text(report))
    raise SystemExit(CODES[report["status"]])


async def examine(operations: Operations, late_after: float, timeout: float, report: dict[str, Any]) -> None:
    """Add to the report what is known, worst news first."""
    async with asyncio.timeout(timeout):
        told = await operations.system.stats()
        workers = (await operations.system.workers()).items
        report["workers"] = sum(worker.state != "lost" for worker in workers)
        report["oldest_due_s"] = told.oldest_due_s
        report["paused"] = told.paused
        report["unserved"] = await unserved(operations)
    report["problems"] = _problems(report, late_after)
    report["status"] = "degraded" if report["problems"] else "healthy"


def _problems(report: dict[str, Any], late_after: float) -> list[str]:
    problems = []
    if report["paused"]:
        problems.append("everything is paused: no job starts until rota resume")
    if not report["workers"]:
        problems.append("no worker is alive: start one with rota worker --app MODULE:APP")
    oldest = report["oldest_due_s"]
    if oldest is not None and oldest > late_after:
        problems.append(
            f"the oldest due job has waited for {short_duration(oldest)} (more than {short_duration(late_after)})"
        )
    if report["workers"]:  # without any worker, nobody knows anything: said already
        problems += [line.removeprefix("! ") for line in unserved_lines(report["unserved"])]
    return problems


def _text(report: dict[str, Any]) -> str:
    status = report["status"]
    lines = [f"{style(status, COLOURS.get(status, 'red'), bold=True)}  {safe(report['store'])}"]
    lines += [f"  {style('!', 'yellow')} {safe(problem)}" for problem in report["problems"]]
    if "workers" in report:
        oldest = report["oldest_due_s"]
        due = (
            "no job is due"
            if oldest is None
            else f"the oldest due job has waited for {short_duration(oldest)}"
        )
        lines.append(f"  schema current, {plural(report['workers'], 'worker')} alive, {due}")
    return "\n".join(lines)
