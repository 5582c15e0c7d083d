"""Every action on credentials, as one group: API tokens and users."""

from __future__ import annotations

from .tokens import TokenActions
from .users import UserActions


class AccessActions(TokenActions, UserActions):
    """Actions on API tokens and users."""
