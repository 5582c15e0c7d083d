"""What can go wrong in a run without ending it."""

from __future__ import annotations


class Failed(Exception):
    """This figure could not be taken: a job was lost or ran twice, a process died, time ran out."""


class Absent(Exception):
    """This peer cannot take part here; the reason is told, and the others go on."""
