"""The root of the command line: global options, and commands imported only when they are called.

``rota --help`` must feel instant, so nothing here may import the app, a store or msgspec.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from ..errors import RotaError
from ..version import __version__
from .parts.exit_codes import report
from .parts.target import Target, target_options

# name: (module in commands/, summary); each module defines a command of that name
COMMANDS = {
    "demo": ("demo", "Try rota: a store, a worker, the dashboard and sample tasks."),
    "up": ("up", "Run jobs and serve the dashboard and API with one command."),
    "worker": ("worker", "Run jobs."),
    "serve": ("serve", "Serve the dashboard and API."),
    "migrate": ("migrate", "Migrate the store's schema."),
    "jobs": ("jobs", "List, show, enqueue, retry, cancel, update and delete jobs."),
    "schedules": ("schedules", "List, show, create, change and preview schedules."),
    "runs": ("runs", "List the runs of schedules."),
    "calendars": ("calendars", "Manage dates on which schedules do not run."),
    "queues": ("queues", "List, pause and resume queues."),
    "tasks": ("tasks", "List, pause and resume tasks."),
    "tenants": ("tenants", "List and pause tenants, and set what they may: weight, quotas, budget."),
    "limits": ("limits", "List, show, set and drop limits on what runs at once and how fast."),
    "pause": ("gates", "Pause everything, or one queue, task, tenant or schedule."),
    "resume": ("gates", "Resume everything, or one queue, task, tenant or schedule."),
    "gates": ("gates", "List what is paused, by whom and why."),
    "workers": ("workers", "List workers."),
    "stats": ("stats", "Show counts by state and queue."),
    "top": ("top", "Show queues, the fullest limits, running jobs and failures, live."),
    "audit": ("audit", "List and export the audit log."),
    "health": ("health", "Check the store, schema and workers, for people and probes."),
    "doctor": ("doctor", "Check for problems and show how to fix them."),
    "token": ("tokens", "Create, list and revoke API tokens."),
    "users": ("users", "Manage users who sign in with a password."),
    "config": ("config", "List, get and set settings."),
    "bench": ("bench", "Measure the speed of this store."),
    "completion": ("completion", "Print a completion script for your shell."),
}


class Root(click.Group):
    """Imports a command when it is called; prints every RotaError as one line with an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(
            import_module(f".commands.{COMMANDS[cmd_name][0]}", __package__), cmd_name
        )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RotaError as error:
            ctx.exit(report(error, debug=ctx.ensure_object(Target).debug))


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rota", message="%(prog)s %(version)s")
@click.option(
    "--debug", is_flag=True, envvar="ROTA_DEBUG", help="Show the traceback of an error.  [env: ROTA_DEBUG]"
)
@target_options
@click.pass_context
def root(ctx: click.Context, debug: bool) -> None:
    """Durable jobs and schedules on the database you already have.

    Exit codes: 0 success, 1 failure, 2 usage, configuration or import error, 3 store unreachable,
    4 schema out of date.
    """
    ctx.ensure_object(Target).debug = debug
