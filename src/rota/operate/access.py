"""Every action on credentials, as one group: API tokens, users and sessions."""

from __future__ import annotations

from .sessions import SessionActions
from .tokens import TokenActions
from .users import UserActions


class AccessActions(TokenActions, UserActions, SessionActions):
    """Actions on API tokens, users and sessions."""
