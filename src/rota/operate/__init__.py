"""Every action of an operator, once: checked, audited, and reached the same way from everywhere.

``Desk`` is the whole of it, for one actor. The command line, the HTTP interface and the dashboard are
its clients, each action of it is a method that takes path names and one request value, and answers
with a view (``views.py``). ``basics`` holds the plain acts that the app itself uses.
"""

from .job_edits import attempts, check_id, check_state, get, stats
from .operations import Operations
from .services import Services

__all__ = [
    "Operations",
    "Services",
    "attempts",
    "check_id",
    "check_state",
    "get",
    "stats",
]
