"""``rota doctor``: everything that can be looked at, each finding with its remedy."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from ...errors import SchemaMismatch, StoreUnavailable
from ...model import Finding
from ...operate.views import DoctorReport
from ...terminal.text import json_text, plural, safe, style
from ..parts.exit_codes import FAILED, SCHEMA, UNREACHABLE, code_of
from ..parts.target import Target, pass_target, target_options

if TYPE_CHECKING:
    from ...operate import Operations

LOOKS = {"problem": ("✗", "red"), "warning": ("!", "yellow"), "fine": ("✓", "green")}  # the worst first
REMEDIES = {
    UNREACHABLE: "See that the server is up and that the address is right, then ask again.",
    SCHEMA: "Run rota migrate.",
}


@click.command()
@click.option("--strict", is_flag=True, help="Exit 1 also if there are only warnings.")
@click.option("--json", "as_json", is_flag=True, help='One object: {"findings": […], "worst": …}.')
@target_options
@pass_target
def doctor(target: Target, strict: bool, as_json: bool) -> None:
    """Examine the store, the workers and the schedules.

    Exit codes: 0 fine, 1 problem, 3 store unreachable, 4 schema out of date.
    """
    health, code = target.operations(examined)
    if as_json:
        click.echo(json_text(health))
    else:
        _tell(health)
    if code == 0 and strict and health.worst == "warning":
        code = FAILED
    raise SystemExit(code)


async def examined(operations: Operations) -> tuple[DoctorReport, int]:
    """What was found, and the exit code that it stands for."""
    try:
        await operations.gates.list()  # without an answer to so little there is nothing to examine
        health = await operations.system.doctor()
    except (StoreUnavailable, SchemaMismatch) as error:
        code = code_of(error)
        check = "schema" if code == SCHEMA else "store"
        found = Finding(check=check, level="problem", text=str(error), remedy=REMEDIES[code])
        return DoctorReport(findings=(found,), worst="problem"), code
    if any(one.check == "schema" and one.level == "problem" for one in health.findings):
        return health, SCHEMA
    return health, FAILED if health.worst == "problem" else 0


def _tell(health: DoctorReport) -> None:
    order = list(LOOKS)
    findings = sorted(health.findings, key=lambda one: order.index(one.level))
    for level, group in groupby(findings, key=lambda one: one.level):
        found = list(group)
        glyph, colour = LOOKS[level]
        heading = f"{len(found)} in order" if level == "fine" else plural(len(found), level)
        click.echo(style(heading, bold=True))
        for one in found:
            click.echo(f"  {style(glyph, colour)} {style(safe(one.check), bold=True)}: {safe(one.text)}")
            if one.remedy and level != "fine":
                click.echo(f"    {safe(one.remedy)}")
