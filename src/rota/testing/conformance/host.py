"""What the author of a store provides so that the suite can reach it from outside.

Owns: the protocol of a host, and the child processes that the rules start. Must never know a kind of store.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol

import msgspec

PATIENCE_S = 60.0  # for a child process to answer; generous, since only a broken store ever uses it up


class StoreHost(Protocol):
    """An empty, migrated store that several processes can open, and the power to take it away.

    ``factory`` names the function that makes a store from ``url``, as ``module:function``; child processes
    import it. The default opener of rota, which also knows the stores of entry points, is
    ``rota.store.open:open_store``.
    """

    url: str
    factory: str

    def crash(self) -> bool:
        """Kill the server without warning and start it again; False if the store has no server."""

    def outage(self) -> AbstractContextManager[None] | None:
        """Make the store unreachable for the time of the block; None if nothing can come between."""

    def transaction(self, *, commit: bool) -> AbstractAsyncContextManager[Any] | None:
        """A connection of the caller's own, in a transaction that ends by commit or rollback.

        None if the store cannot join a transaction.
        """


class StoreProcess:
    """A process that uses the store: see ``child.py`` for what it can be asked to do."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def line(self) -> str:
        """The next line that the child writes; fails if it ends without one."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            text = (await self._process.stdout.readline()).decode()
        assert text.endswith("\n"), f"the child process ended with {await self._process.wait()}"
        return text.strip()

    async def kill(self) -> list[str]:
        """Kill it without warning; the complete lines that it had written and that were not read yet."""
        self._process.kill()
        return await self.rest()

    async def rest(self) -> list[str]:
        """Everything it still writes until it ends."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            text = (await self._process.stdout.read()).decode()
            await self._process.wait()
        return [line.strip() for line in text.splitlines(keepends=True) if line.endswith("\n")]

    async def done(self) -> list[str]:
        """Like ``rest``, but the child must end well."""
        lines = await self.rest()
        assert self._process.returncode == 0, f"the child process ended with {self._process.returncode}"
        return lines


@contextlib.asynccontextmanager
async def child(host: StoreHost, action: str, **given: Any) -> AsyncIterator[StoreProcess]:
    """A child process that carries out the action; killed at the end of the block if it still runs."""
    order = msgspec.json.encode({"url": host.url, "factory": host.factory, "action": action, **given})
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rota.testing.conformance.child",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(order)
    process.stdin.close()
    try:
        yield StoreProcess(process)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
