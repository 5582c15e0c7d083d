"""What a command works on: ``--app`` and ``--url``, or the server at ``--api``; given anywhere.

Must not import the app before a command really needs it: the root of the command line imports this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from datetime import datetime

    from ..app import Rota
    from ..model import Actor
    from ..operate import Operations
    from .remote import RemoteOperations

T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., Any])

# A supervisor hands a URL to its workers by this name: an argument would show it in the process list.
URL_OVERRIDE = "ROTA_OVERRIDE_URL"


@dataclass
class Target:
    """The options as given, the later word winning over the earlier, and any word over the environment."""

    app: str | None = None
    imports: tuple[str, ...] = ()
    url: str | None = None
    api: str | None = None
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    debug: bool = False
    said: set[str] = field(default_factory=set)  # on the command line, not by the environment

    @property
    def is_remote(self) -> bool:
        """Whether a server is asked instead of the store."""
        if self.api is None:
            return False
        if "api" in self.said and self.url is not None:
            raise click.UsageError("--api and --url were both given: ask the server, or the store; keep one.")
        return "api" in self.said or not self.said & {"app", "url"}

    # --- the app itself --------------------------------------------------------------------------

    def refuse_api(self) -> None:
        """For what only works on the store itself."""
        if self.is_remote:
            raise click.UsageError(
                "this command works on the store itself, not through a server: "
                "leave --api (ROTA_API) out, and give --app or --url."
            )

    def open(self) -> Rota:
        """The app that was named, or an app without tasks on the store in force."""
        self.refuse_api()
        from ..app import Rota

        if self.app is None:
            return Rota(self.url)
        from .reference import load, load_tasks, rebind

        app = load(self.app)
        if self.url is not None:
            rebind(app, self.url)
        load_tasks(app, self.imports)
        return app

    def ask(self, question: Callable[[Rota], Awaitable[T]]) -> T:
        """Open the app, await the answer, close the app."""
        return _run(self.open(), question)

    def offline(self) -> Rota:
        """An app for what needs no store, such as checking flags; of a server we know no tasks."""
        from ..app import Rota

        return Rota("sqlite://:memory:") if self.is_remote else self.open()

    # --- the desk --------------------------------------------------------------------------------

    def operations(self, question: Callable[[Operations], Awaitable[T]]) -> T:
        """Await an answer of the desk: the one on the store, or the one behind the server."""
        if self.is_remote:
            # It has the same rooms and actions, made from the table of routes: see RemoteOperations.
            return _run(self.remote(), lambda remote: question(cast("Operations", remote)))
        return self.ask(lambda app: question(app.operations(operator())))

    def remote(self) -> RemoteOperations:
        from .remote import RemoteOperations, read_token

        assert self.api is not None
        return RemoteOperations(self.api, self.token or read_token(), self.ca_file)

    def place(self) -> str:
        """Where this is, for people; without a password."""
        return str(self.api) if self.is_remote else self.open().stores.root().url


def operator() -> Actor:
    """Who types here: whoever can open the store may do everything, and the audit log tells who it was."""
    import getpass
    import socket

    from ..model import Actor

    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        user = "unknown"
    return Actor(name=f"{user}@{socket.gethostname()}", role="admin", payloads=True, via="cli")


async def now_of(operations: Operations) -> datetime:
    """The store's time, also if nothing else was asked of it yet."""
    if operations.app is not None:  # a server reads its store's clock by itself
        await operations.store()
    return (await operations.system.me()).now


def _run(place: Any, question: Callable[[Any], Awaitable[T]]) -> T:
    import asyncio  # half of the time that ``rota --help`` takes

    async def answer() -> T:
        try:
            return await question(place)
        finally:
            await place.close()

    return asyncio.run(answer())


pass_target = click.make_pass_decorator(Target, ensure=True)


# --- options -------------------------------------------------------------------------------------


def target_options(command: C) -> C:
    """Give a command ``--app``, ``--url``, ``--api``, ``--token`` and ``--ca-file``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def url_option(command: C) -> C:
    """Give a command ``--url``."""
    return _URL(command)


def import_option(command: C) -> C:
    """Give a command ``--import``."""
    return _IMPORT(command)


def _remember_imports(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    named = [name.strip() for value in values for name in value.split(",")]
    ctx.ensure_object(Target).imports = tuple(dict.fromkeys(filter(None, named)))


def _remember(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    target = ctx.ensure_object(Target)
    assert param.name is not None
    said_here = ctx.get_parameter_source(param.name) is click.core.ParameterSource.COMMANDLINE
    if value is not None and (said_here or getattr(target, param.name) is None):
        setattr(target, param.name, value)
    if said_here:
        target.said.add(param.name)
        if param.name == "token":
            click.echo("rota: the process list shows --token: set ROTA_TOKEN or ROTA_TOKEN_FILE", err=True)


_URL = click.option(
    "--url", metavar="URL", envvar=URL_OVERRIDE, expose_value=False, callback=_remember,
    help="The store; else that of --app, ROTA_URL, DATABASE_URL, rota.toml, sqlite:///rota.db.",
)  # fmt: skip
_IMPORT = click.option(
    "--import", metavar="MODULE", multiple=True, expose_value=False, callback=_remember_imports,
    help="Import this module, which declares tasks; or a pattern such as 'shop.*.tasks'. Repeatable.  "
    "[env: ROTA_IMPORTS]",
)  # fmt: skip
_OPTIONS = (
    click.option(
        "--app", metavar="MODULE:APP", envvar="ROTA_APP", expose_value=False, callback=_remember,
        help="Where your Rota object is, such as shop.jobs:app.  [env: ROTA_APP]",
    ),
    _URL,
    click.option(
        "--api", metavar="URL", envvar="ROTA_API", expose_value=False, callback=_remember,
        help="Ask a rota server instead of a store.  [env: ROTA_API]",
    ),
    click.option(
        "--token", envvar="ROTA_TOKEN", expose_value=False, callback=_remember,
        help="For --api; better in the environment.  [env: ROTA_TOKEN, ROTA_TOKEN_FILE]",
    ),
    click.option(
        "--ca-file", metavar="FILE", envvar="ROTA_CA_FILE", expose_value=False, callback=_remember,
        help="For --api: the certificates to trust.  [env: ROTA_CA_FILE]",
    ),
)  # fmt: skip
