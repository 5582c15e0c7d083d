"""What a task says about itself, as workers publish it for those who do not have its code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .limit import Limit
from .value import Value


class TaskParameter(Value, frozen=True, kw_only=True):
    """An argument of a task."""

    name: str
    type: str  # as its code annotates it, for people
    required: bool


class TaskDeclaration(Value, frozen=True, kw_only=True):
    """A task as its code declares it: the options of its jobs, and what it takes."""

    name: str
    options: Mapping[str, Any] = msgspec.field(default_factory=dict)  # queue, max_attempts, tags and the like
    executor: str = "thread"
    parameters: tuple[TaskParameter, ...] = ()
    open_ended: bool = False  # takes other arguments as well
    description: str = ""
    limit: Limit | None = None  # on its jobs, over all workers
