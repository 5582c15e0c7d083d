"""What a token or a user may do: options, table columns and a description."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from ...model import Role
from ...operate.views import TokenView, UserView
from ...terminal.text import safe
from .lists import ListColumn
from .options import apply_options

C = TypeVar("C", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--role", type=click.Choice(get_args(Role)), required=True, help="Role."),
    click.option("--tenant", metavar="NAME", help="Limit access to one tenant.  [default: all tenants]"),
    click.option("--payloads/--no-payloads", default=None,
                 help="Allow or deny reading payloads.  [default: allowed for operators and admins]"),
)  # fmt: skip


_SCOPE = (
    click.option("--task", "tasks", multiple=True, metavar="NAME",
                 help="Task that a producer may enqueue (repeatable).  [default: all]"),
    click.option("--queue", "queues", multiple=True, metavar="NAME",
                 help="Queue that a producer may enqueue to (repeatable).  [default: all]"),
)  # fmt: skip


def scope_options(command: C) -> C:
    """Give a command ``--task`` and ``--queue``."""
    return apply_options(command, _SCOPE)


def access_options(command: C) -> C:
    """Give a command ``--role``, ``--tenant`` and ``--payloads``."""
    return apply_options(command, _OPTIONS)


def access_columns(payloads_yield: int) -> tuple[ListColumn[Any], ...]:
    return (
        ListColumn("ROLE", lambda one, now: safe(one.role)),
        ListColumn("TENANT", lambda one, now: safe(one.tenant or "all")),
        ListColumn("PAYLOADS", lambda one, now: "yes" if one.payloads else "no", yields=payloads_yield),
    )


def describe_access(one: TokenView | UserView) -> str:
    """``operator of tenant acme, without payloads``."""
    tenants = "all tenants" if one.tenant is None else f"tenant {safe(one.tenant)}"
    scope = [*one.tasks, *one.queues] if isinstance(one, TokenView) else []
    only = f" for {safe(', '.join(scope))} only" if scope else ""
    return f"{safe(one.role)} of {tenants}{only}, {'with' if one.payloads else 'without'} payloads"
