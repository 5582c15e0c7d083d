"""What a command works on: ``--app`` and ``--url``, or the server at ``--api``, before or after the command.

Must not import the app before a command needs it: the root of the command line imports this module.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from .options import apply_options

if TYPE_CHECKING:
    from datetime import datetime

    from ...app import Rota
    from ...operate import Operations
    from .remote import RemoteOperations

T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., Any])

# A supervisor passes the URL to its workers in this variable: an argument would show in the process list.
URL_OVERRIDE = "ROTA_OVERRIDE_URL"


@dataclass
class Target:
    """The options in force: the last one given wins, and any option wins over the environment."""

    app: str | None = None
    imports: tuple[str, ...] = ()
    url: str | None = None
    api: str | None = None
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    debug: bool = False
    typed: set[str] = field(default_factory=set)  # given on the command line, not by the environment

    @property
    def is_remote(self) -> bool:
        """Whether commands go to a server instead of the store."""
        if self.api is None:
            return False
        if "api" in self.typed and self.url is not None:
            raise click.UsageError("--api and --url cannot be combined: use the server or the store.")
        return "api" in self.typed or not self.typed & {"app", "url"}

    # --- the app itself --------------------------------------------------------------------------

    def require_store(self) -> None:
        """For commands that only work on the store itself."""
        if self.is_remote:
            raise click.UsageError(
                "this command works on the store itself, not through a server: "
                "remove --api (ROTA_API) and pass --app or --url."
            )

    def open(self) -> Rota:
        """The app of --app, or an app without tasks on the store in force."""
        self.require_store()
        from ...app import Rota

        if self.app is None:
            return Rota(self.url)
        from .app_reference import load, load_tasks, rebind

        app = load(self.app)
        if self.url is not None:
            rebind(app, self.url)
        load_tasks(app, self.imports)
        return app

    def run(self, act: Callable[[Rota], Awaitable[T]]) -> T:
        """Open the app, await the act, close the app."""
        return _run(self.open(), act)

    def offline(self) -> Rota:
        """An app for work without a store, such as checking options. With --api it has no tasks."""
        from ...app import Rota

        return Rota("sqlite://:memory:") if self.is_remote else self.open()

    # --- the operations --------------------------------------------------------------------------

    def operations(self, act: Callable[[Operations], Awaitable[T]]) -> T:
        """Await an act on the operations of the store, or of the server."""
        if self.is_remote:
            # The same groups and actions, generated from the table of routes: see RemoteOperations.
            return _run(self.remote(), lambda remote: act(cast("Operations", remote)))
        from ...runtime.audit import program

        return self.run(lambda app: act(app.operations(program("cli"))))

    def remote(self) -> RemoteOperations:
        from .remote import RemoteOperations, read_token

        assert self.api is not None
        return RemoteOperations(self.api, self.token or read_token(), self.ca_file)

    def place(self) -> str:
        """The server or store for display, without a password."""
        return str(self.api) if self.is_remote else self.open().stores.root().url


async def store_time(operations: Operations) -> datetime:
    """The store's time; connects first if nothing else has."""
    if operations.services is not None:  # a server reads its store's clock itself
        await operations.store()
    return (await operations.system.me()).now


def _run(opened: Any, act: Callable[[Any], Awaitable[T]]) -> T:
    import asyncio  # imported late: it would double the time of ``rota --help``

    async def act_and_close() -> T:
        try:
            return await act(opened)
        finally:
            await opened.close()

    return asyncio.run(act_and_close())


pass_target = click.make_pass_decorator(Target, ensure=True)


# --- options -------------------------------------------------------------------------------------


def target_options(command: C) -> C:
    """Give a command ``--app``, ``--url``, ``--api``, ``--token`` and ``--ca-file``."""
    return apply_options(command, (*_STORE, *_server_options()))


def store_options(command: C) -> C:
    """Give a command ``--app`` and ``--url``. Options of a server are hidden: named, to be refused."""
    return apply_options(command, (*_STORE, *_server_options(hidden=True)))


def url_option(command: C) -> C:
    """Give a command ``--url``, for a store that is made on the spot without it."""
    return _url("Store URL.  [default: a fresh SQLite file]")(command)


def _remember(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    target = ctx.ensure_object(Target)
    assert param.name is not None
    is_typed = ctx.get_parameter_source(param.name) is click.core.ParameterSource.COMMANDLINE
    if value is not None and (is_typed or getattr(target, param.name) is None):
        setattr(target, param.name, value)
    if is_typed:
        target.typed.add(param.name)
        if param.name == "token":
            click.echo(
                "rota: --token is visible in the process list; set ROTA_TOKEN or ROTA_TOKEN_FILE instead",
                err=True,
            )
        if param.name == "url" and _has_password(value):
            click.echo(
                "rota: the password in --url is visible in the process list; "
                "set ROTA_URL or ROTA_URL_FILE instead",
                err=True,
            )


def _has_password(url: str | None) -> bool:
    from ...config.passwords import has_password

    return has_password(url)


def _url(help: str) -> Callable[[C], C]:
    return click.option(
        "--url", metavar="URL", envvar=URL_OVERRIDE, expose_value=False, callback=_remember, help=help
    )


_STORE = (
    click.option(
        "--app", metavar="MODULE:APP", envvar="ROTA_APP", expose_value=False, callback=_remember,
        help="Your Rota object, such as shop.jobs:app.  [env: ROTA_APP]",
    ),
    _url("Store URL.  [default: the app's, then ROTA_URL, DATABASE_URL, rota.toml, sqlite:///rota.db]"),
)  # fmt: skip


def _server_options(hidden: bool = False) -> tuple[Callable[[C], C], ...]:
    return (
        click.option(
            "--api", metavar="URL", envvar="ROTA_API", expose_value=False, callback=_remember, hidden=hidden,
            help="Use a rota server instead of a store.  [env: ROTA_API]",
        ),
        click.option(
            "--token", envvar="ROTA_TOKEN", expose_value=False, callback=_remember, hidden=hidden,
            help="API token for --api. Prefer ROTA_TOKEN: other users can see command lines.  "
            "[env: ROTA_TOKEN, ROTA_TOKEN_FILE]",
        ),
        click.option(
            "--ca-file", metavar="FILE", envvar="ROTA_CA_FILE", expose_value=False, callback=_remember,
            hidden=hidden, help="Certificates to trust for --api.  [env: ROTA_CA_FILE]",
        ),
    )  # fmt: skip
