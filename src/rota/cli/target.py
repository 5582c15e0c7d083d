"""What a command works on: ``--app`` and ``--url``, given before or after the subcommand.

Must not import the app before a command really needs it: the root of the command line imports this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..app import Rota

T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., Any])

# A supervisor hands a URL to its workers by this name: an argument would show it in the process list.
URL_OVERRIDE = "ROTA_OVERRIDE_URL"


@dataclass
class Target:
    """``app`` and ``url`` as given, the later word winning over the earlier."""

    app: str | None = None
    url: str | None = None
    debug: bool = False

    def open(self) -> Rota:
        """The app that was named, or an app without tasks on the store in force."""
        from ..app import Rota

        if self.app is None:
            return Rota(self.url)
        from .reference import load, rebind

        app = load(self.app)
        return app if self.url is None else rebind(app, self.url)

    def ask(self, question: Callable[[Rota], Awaitable[T]]) -> T:
        """Open the app, await the answer, close the app."""
        import asyncio  # half of the time that ``rota --help`` takes

        app = self.open()

        async def answer() -> T:
            try:
                return await question(app)
            finally:
                await app.close()

        return asyncio.run(answer())


pass_target = click.make_pass_decorator(Target, ensure=True)


def target_options(command: C) -> C:
    """Give a command ``--app`` and ``--url``."""
    option = click.option(
        "--app", metavar="MODULE:APP", envvar="ROTA_APP", expose_value=False, callback=_remember,
        help="Where your Rota object is, such as shop.jobs:app.  [env: ROTA_APP]",
    )  # fmt: skip
    return option(url_option(command))


def url_option(command: C) -> C:
    """Give a command ``--url``."""
    option = click.option(
        "--url", metavar="URL", envvar=URL_OVERRIDE, expose_value=False, callback=_remember,
        help="The store; else that of --app, ROTA_URL, DATABASE_URL, rota.toml, sqlite:///rota.db.",
    )  # fmt: skip
    return option(command)


def _remember(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    target = ctx.ensure_object(Target)
    assert param.name is not None
    said_here = ctx.get_parameter_source(param.name) is click.core.ParameterSource.COMMANDLINE
    if value is not None and (said_here or getattr(target, param.name) is None):
        setattr(target, param.name, value)
