"""``python -m rota.cli.parts.api_program``: the process in which ``rota up`` and ``rota demo`` serve the API.

Loads the app as the command has, from the first line of its standard input.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import cast

import msgspec

from ...admin.api_process import ApiReady, ApiRequest
from ...admin.api_process_child import serve
from ...errors import RotaError
from . import logs, server_options
from .exit_codes import FAILED
from .target import Target

LONGEST_LINE = 1 << 20


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # sent to all processes of a service: the worker decides
    worker_pid, channel = os.getppid(), socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    line = _first_line(channel)
    if not line:
        return
    request = msgspec.json.decode(line, type=ApiRequest)
    program = request.program
    target = Target(app=program.app, imports=program.imports, url=program.url)
    try:
        app, _, _ = logs.set_up_for(target, program.log_level, cast("logs.Format | None", program.log_format))
    except RotaError as error:
        channel.sendall(msgspec.json.encode(ApiReady(error=str(error))) + b"\n")
        sys.exit(FAILED)
    try:
        server_options.run(serve(app, request, channel, worker_pid))
    except RotaError:
        sys.exit(FAILED)  # said to the worker's process, which prints it


def _first_line(channel: socket.socket) -> bytes:
    """Byte for byte: what follows is for the event loop."""
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < LONGEST_LINE:
        byte = channel.recv(1)
        if not byte:
            return b""
        line += byte
    return bytes(line)


if __name__ == "__main__":
    main()
