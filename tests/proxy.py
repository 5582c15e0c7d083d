"""A proxy to a server that can stall or freeze: connections stay open but transmit nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self


class Proxy:
    """``async with Proxy(port) as proxy``: forwards ``proxy.port`` to a local port, except while stalled."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._open = asyncio.Event()
        self._open.set()
        self._frozen: set[object] = set()  # connections that never transmit again
        self._listening: set[object] = set()
        self._connected: set[object] = set()
        self._streams: set[asyncio.Task[None]] = set()
        self.port = 0
        self.dropped_chunks = 0  # chunks that a frozen connection did not transmit
        self.sent_bytes = 0  # from clients to the server

    def stall(self) -> None:
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    @property
    def listeners(self) -> int:
        """The number of connections that have ever started to LISTEN."""
        return len(self._listening)

    @property
    def connections(self) -> int:
        """The number of connections ever made."""
        return len(self._connected)

    def freeze_listeners(self) -> None:
        """Freeze the current listeners for good: open but silent. Later connections work."""
        self._frozen |= self._listening

    def freeze(self) -> None:
        """Freeze all current connections for good: open but silent. Later connections work."""
        self._frozen |= self._connected

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for stream in self._streams:
            stream.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        self._streams.add(me)
        with suppress(OSError, asyncio.CancelledError):
            await self._open.wait()
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            mark = object()  # identifies the connection
            self._connected.add(mark)
            await asyncio.gather(
                self._forward(reader, far_writer, mark, is_client=True),
                self._forward(far_reader, writer, mark, is_client=False),
            )
        writer.close()
        self._streams.discard(me)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mark: object, *, is_client: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if b"LISTEN rota_" in data:
                    self._listening.add(mark)
                await self._open.wait()
                if mark in self._frozen:
                    self.dropped_chunks += 1
                    continue
                self.sent_bytes += len(data) if is_client else 0
                writer.write(data)
                await writer.drain()
        writer.close()
