"""The root of the command line: global options, and commands that are imported only when they are called.

``rota --help`` must feel instant, so nothing here may import the app, a store or msgspec.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from ..errors import RotaError
from ..version import __version__
from .failures import report
from .target import Target, target_options

# name: (module, what it does); each module has a command of the name's own.
COMMANDS = {
    "demo": ("demo", "See everything at once: a store, a worker and sample tasks."),
    "up": ("up", "Run jobs and serve the admin interface, in one process."),
    "worker": ("worker", "Run jobs."),
    "serve": ("serve", "Serve the admin interface."),
    "migrate": ("migrate", "Bring the store's schema up to date."),
    "jobs": ("jobs", "List, show, enqueue, retry, cancel, move and delete jobs."),
    "schedules": ("schedules", "List, show, create, change and try out schedules."),
    "runs": ("runs", "What schedules have run, and how it went."),
    "calendars": ("calendars", "Dates on which schedules do not run."),
    "queues": ("queues", "List, pause and resume queues."),
    "tasks": ("tasks", "List, pause and resume tasks."),
    "tenants": ("tenants", "List, pause and resume tenants."),
    "pause": ("gates", "Pause everything, or one queue, task, tenant or schedule."),
    "resume": ("gates", "Let what was paused go on."),
    "gates": ("gates", "What is paused, by whom, and why."),
    "workers": ("workers", "The workers that are alive."),
    "stats": ("stats", "Counts by state and queue."),
    "top": ("top", "A live view: queues, running jobs, failures."),
    "audit": ("audit", "Who did what, and how it ended."),
    "health": ("health", "Is everything all right? For people and probes."),
    "doctor": ("doctor", "Look at everything that can go wrong, with remedies."),
    "token": ("token", "Make, list and revoke access tokens."),
    "users": ("users", "People who sign in with a password."),
    "config": ("config", "The settings in force, and where they come from."),
    "bench": ("bench", "How fast is this store? A short measurement."),
    "completion": ("completion", "Completion of commands and options for your shell."),
}


class Root(click.Group):
    """Loads a command when it is called; turns every RotaError into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f".{COMMANDS[cmd_name][0]}", __package__), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, says) for name, (_, says) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RotaError as error:
            ctx.exit(report(error, debug=ctx.ensure_object(Target).debug))


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rota", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, envvar="ROTA_DEBUG", help="Show the traceback of an error.")
@target_options
@click.pass_context
def root(ctx: click.Context, debug: bool) -> None:
    """Durable jobs and schedules on the database you already have.

    Exit codes: 0 done, 1 failed, 2 usage, configuration or import, 3 store unreachable,
    4 schema out of date.
    """
    ctx.ensure_object(Target).debug = debug
