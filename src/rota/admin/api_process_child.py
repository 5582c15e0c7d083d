"""The API in a process of its own, beside a worker: the far side of ``api_process.py``.

Ends when the worker's process does, in whatever way. Its probes answer for the worker too, whose services
it knows from messages; a worker that sends none is late, and then stuck, as a service would be.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

import msgspec

from ..app import Rota
from ..errors import RotaError
from ..runtime.service_records import ServiceRecord
from .api_process import EVERY_S, ApiReady, ApiRequest, WorkerMessage
from .connections import LimitedListener
from .first_token import first_token, lacks_credentials
from .server import Server


async def serve(app: Rota, request: ApiRequest, channel: socket.socket, worker_pid: int) -> None:
    """Serve until the worker's process ends, or ends this one."""
    reader, writer = await asyncio.open_connection(sock=channel)
    try:
        listening = LimitedListener(fileno=request.listening)
        server = Server(app, request.listen, listening)
        await server.start()
        try:
            ready = ApiReady(
                url=server.url,
                link=server.link() if request.wants_link and request.is_first else None,
                token=await first_token(app) if request.wants_token and request.is_first else None,
                lacks_credentials=await lacks_credentials(app),
            )
            writer.write(msgspec.json.encode(ready) + b"\n")
            await _follow(app, reader, server, worker_pid)
        finally:
            await server.stop()
    except RotaError as error:
        writer.write(msgspec.json.encode(ApiReady(error=str(error))) + b"\n")
        raise
    finally:
        with suppress(OSError):
            await writer.drain()
        writer.close()
        await app.close()


async def _follow(app: Rota, reader: asyncio.StreamReader, server: Server, worker_pid: int) -> None:
    """Show the worker's services in the probes until the worker ends."""
    record = ServiceRecord("worker process")
    with app.runtime.records.showing(record), suppress(OSError):
        record.began()
        while os.getppid() == worker_pid:  # a process that a task has forked keeps the socket open
            try:
                line = await asyncio.wait_for(reader.readline(), 5 * EVERY_S)
            except TimeoutError:
                continue
            if not line:
                return
            message = msgspec.json.decode(line, type=WorkerMessage)
            if message.force:
                server.force()
            record.worked(EVERY_S)
            record.began()  # the next message: too long without one, and the worker is stuck
            app.runtime.records.elsewhere = message.services
