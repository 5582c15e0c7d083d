"""A proxy to a server that can stall: connections stay open but transmit nothing."""

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
        self._stalled_listeners: set[object] = set()  # connections that LISTEN and no longer transmit
        self._listening: set[object] = set()
        self._streams: set[asyncio.Task[None]] = set()
        self.port = 0
        self.dropped_chunks = 0  # chunks that never reached a listener

    def stall(self) -> None:
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    @property
    def listeners(self) -> int:
        """The number of connections that have ever started to LISTEN."""
        return len(self._listening)

    def stall_listeners(self) -> None:
        """Stall the current listeners for good; later connections work."""
        self._stalled_listeners |= self._listening

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
            await asyncio.gather(
                self._forward(reader, far_writer, mark), self._forward(far_reader, writer, mark)
            )
        writer.close()
        self._streams.discard(me)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mark: object
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if b"LISTEN rota_" in data:
                    self._listening.add(mark)
                await self._open.wait()
                if mark in self._stalled_listeners:
                    self.dropped_chunks += 1
                    continue
                writer.write(data)
                await writer.drain()
        writer.close()
