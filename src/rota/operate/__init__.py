"""Admin actions: each one defined once, access-checked, audited, and the same for every interface.

``Operations`` offers all of them to one actor. The command line, the HTTP API and the dashboard are its
clients. An action is a method that takes the names in its path and one request value (``requests``), and
returns a view (``views``). ``job_edits`` holds the unchecked, unaudited edits and reads that the app uses.
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
