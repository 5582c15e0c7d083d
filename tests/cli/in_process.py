"""The command line within this process, on the store of the ``folder`` fixture."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from click.testing import CliRunner, Result

from rota import Rota
from rota.cli.root import root

T = TypeVar("T")

URL = "sqlite:///shop.db"
HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202eevil\r\nforged line"


def invoke(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(root, args, input=stdin)


def output(*args: str, stdin: str | None = None) -> str:
    """What a command that succeeds prints."""
    result = invoke(*args, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def output_json(*args: str) -> Any:
    return msgspec.json.decode(output(*args, "--json"))


def on_store(act: Callable[[Rota], Awaitable[T]]) -> T:
    async def open_and_act() -> T:
        app = Rota(URL)
        try:
            return await act(app)
        finally:
            await app.close()

    return asyncio.run(open_and_act())


def enqueue(task: str = "add", **options: Any) -> str:
    return on_store(lambda app: app.enqueue(task, {"a": 1, "b": 2}, **options)).id
