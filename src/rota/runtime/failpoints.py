"""Named places where a crash could hurt. Inert unless ``ROTA_FAILPOINTS`` names one.

``ROTA_FAILPOINTS="settle.before=kill:0.01,claim.after=exit"``: at that point the process kills
itself (SIGKILL) or exits at once, always or with the given probability. For tests only.
"""

from __future__ import annotations

import os
import signal

from .clock import chance

PLACES = (
    "claim.before",
    "claim.after",
    "handler.before",
    "handler.after",
    "settle.before",
    "settle.after",
    "beat.before",
    "beat.after",
    "rescue.before",
    "rescue.after",
    "prune.before",
    "fire.before",
    "fire.after",
)


def _parse(text: str) -> dict[str, tuple[str, float]]:
    points = {}
    for item in filter(None, text.split(",")):
        place, _, action = item.partition("=")
        act, _, share = action.partition(":")
        if place not in PLACES or act not in ("kill", "exit"):
            raise ValueError(f"ROTA_FAILPOINTS: {item!r} is not PLACE=kill|exit[:PROBABILITY]")
        points[place] = (act, float(share or 1))
    return points


ACTIVE = _parse(os.environ.get("ROTA_FAILPOINTS", ""))


def hit(place: str) -> None:
    """Exit here if the environment names this place."""
    if not ACTIVE or place not in ACTIVE:
        return
    act, share = ACTIVE[place]
    if chance() < share:
        if act == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1)
