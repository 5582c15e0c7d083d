"""Errors become exit codes here, and nowhere else: one line on stderr, a traceback only with --debug."""

from __future__ import annotations

import traceback

import click

from ...errors import (
    AlreadyRegistered,
    ConfigError,
    InvalidSchedule,
    OptionError,
    PayloadError,
    RotaError,
    SchemaMismatch,
    StoreUnavailable,
)
from ...terminal.text import safe

FAILED, USAGE, UNREACHABLE, SCHEMA = 1, 2, 3, 4
RECYCLED = 75  # of a supervised worker that has run its --max-jobs: start another

CODES: tuple[tuple[type[RotaError], int], ...] = (
    (StoreUnavailable, UNREACHABLE),
    (SchemaMismatch, SCHEMA),
    (ConfigError, USAGE),
    (OptionError, USAGE),
    (PayloadError, USAGE),
    (InvalidSchedule, USAGE),
    (AlreadyRegistered, USAGE),
)


class CommandFailed(RotaError):
    """A command could not do its work."""


def code_of(error: BaseException) -> int:
    return next((code for kind, code in CODES if isinstance(error, kind)), FAILED)


def report(error: RotaError, *, debug: bool = False) -> int:
    """Print the error; returns its exit code."""
    if debug:
        click.echo(safe("".join(traceback.format_exception(error)), lines=True), err=True, nl=False)
    click.echo(f"rota: {safe(error, lines=True)}", err=True)
    return code_of(error)


def exit_if_failed(failed: int) -> None:
    """Exit with 1 if anything failed."""
    if failed:
        raise SystemExit(FAILED)
