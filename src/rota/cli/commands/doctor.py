"""``rota doctor``: check everything and show each finding with its remedy."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from ...core.plurals import plural
from ...errors import SchemaMismatch, StoreUnavailable
from ...model import Finding
from ...operate.views import DoctorReport
from ...terminal.text import json_text, safe, style
from ..parts.exit_codes import FAILED, SCHEMA, UNREACHABLE, code_of
from ..parts.options import json_option
from ..parts.target import Target, pass_target, target_options

if TYPE_CHECKING:
    from ...operate import Operations

LOOKS = {"problem": ("✗", "red"), "warning": ("!", "yellow"), "ok": ("✓", "green")}  # the worst first
REMEDIES = {
    UNREACHABLE: "Check that the server is running and the URL is correct, then try again.",
    SCHEMA: "Run rota migrate.",
}


@click.command()
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@json_option("findings", "worst")
@target_options
@pass_target
def doctor(target: Target, strict: bool, as_json: bool) -> None:
    """Check the store, the workers and the schedules, and show how to fix problems.

    Exit codes: 0 ok, 1 problem, 3 store unreachable, 4 schema out of date.
    """
    report, code = target.operations(_check)
    if as_json:
        click.echo(json_text(report))
    else:
        _echo(report)
    if code == 0 and strict and report.worst == "warning":
        code = FAILED
    raise SystemExit(code)


async def _check(operations: Operations) -> tuple[DoctorReport, int]:
    """The findings and the exit code."""
    try:
        await operations.gates.list()  # if this fails, nothing else can be checked
        report = await operations.system.doctor()
    except (StoreUnavailable, SchemaMismatch) as error:
        code = code_of(error)
        check = "schema" if code == SCHEMA else "store"
        found = Finding(check=check, level="problem", text=str(error), remedy=REMEDIES[code])
        return DoctorReport(findings=(found,), worst="problem"), code
    if any(one.check == "schema" and one.level == "problem" for one in report.findings):
        return report, SCHEMA
    return report, FAILED if report.worst == "problem" else 0


def _echo(report: DoctorReport) -> None:
    order = list(LOOKS)
    findings = sorted(report.findings, key=lambda one: order.index(one.level))
    for level, group in groupby(findings, key=lambda one: one.level):
        found = list(group)
        glyph, colour = LOOKS[level]
        heading = f"{plural(len(found), 'check')} passed" if level == "ok" else plural(len(found), level)
        click.echo(style(heading, bold=True))
        for one in found:
            click.echo(f"  {style(glyph, colour)} {style(safe(one.check), bold=True)}: {safe(one.text)}")
            if one.remedy and level != "ok":
                click.echo(f"    {safe(one.remedy)}")
