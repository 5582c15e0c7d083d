"""Tells systemd how this process is: ready, alive, about to stop. Inert without ``NOTIFY_SOCKET``.

The protocol is sd_notify(3): lines of text in one datagram to a unix socket.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping

log = logging.getLogger("rota.notify")

VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


def is_wanted() -> bool:
    return bool(os.environ.get("NOTIFY_SOCKET"))


def say(*lines: str) -> bool:
    """Send the lines; False if nobody listens. Never raises: the work matters more than the news."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")) or not hasattr(socket, "AF_UNIX"):
        return False
    text = "\n".join(line.replace("\n", " ") for line in lines)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(text.encode(), "\0" + address[1:] if address[0] == "@" else address)
    except OSError as error:
        log.debug("systemd was not told %r: %s", text, error)
        return False
    return True


def ready(status: str = "running") -> bool:
    return say("READY=1", f"STATUS={status}")


def stopping(status: str = "stopping") -> bool:
    return say("STOPPING=1", f"STATUS={status}")


def watchdog_s() -> float | None:
    """How often to report as alive: half the time systemd waits for it; None if it does not wait."""
    text, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not text.isdecimal() or not int(text) or pid not in ("", str(os.getpid())):
        return None
    return int(text) / 2_000_000


def without(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a child process, which systemd does not want to hear of."""
    return {name: value for name, value in environment.items() if name not in VARIABLES}
