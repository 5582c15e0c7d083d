"""The clock of this store: that of the machine, which every process that opens the file shares.

Besides ``runtime/clock.py`` the only place that reads one. Must never be asked before the work begins: a
call may have waited for the writer.
"""

from __future__ import annotations

import time
from datetime import datetime

from .rows import micros


def machine_micros() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def decided(now: datetime | None) -> int:
    """The instant that the caller gives, or else the machine's own."""
    return machine_micros() if now is None else micros(now)
