"""Notifies systemd that this process is ready, alive or stopping. Inert without ``NOTIFY_SOCKET``.

The protocol is sd_notify(3): lines of text in one datagram to a unix socket.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping

log = logging.getLogger("rota.systemd")

VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


def is_wanted() -> bool:
    return bool(os.environ.get("NOTIFY_SOCKET"))


def notify(*lines: str) -> bool:
    """Send the lines; False if they were not received. Never raises: jobs matter more."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")) or not hasattr(socket, "AF_UNIX"):
        return False
    text = "\n".join(line.replace("\n", " ") for line in lines)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(text.encode(), "\0" + address[1:] if address[0] == "@" else address)
    except OSError as error:
        log.debug("systemd was not notified of %r: %s", text, error)
        return False
    return True


def ready(status: str = "running") -> bool:
    return notify("READY=1", f"STATUS={status}")


def stopping(status: str = "stopping") -> bool:
    return notify("STOPPING=1", f"STATUS={status}")


def watchdog_s() -> float | None:
    """How often to report as alive: half of systemd's own limit; None if it has none."""
    text, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not text.isdecimal() or not int(text) or pid not in ("", str(os.getpid())):
        return None
    return int(text) / 2_000_000


def without(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a child process, which must not notify systemd."""
    return {name: value for name, value in environment.items() if name not in VARIABLES}
