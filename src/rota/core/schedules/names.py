"""The full name of a schedule, ``acme/invoice``: what lists print is what commands take. Pure.

A tenant and a name may both contain a slash, so that of a tenant is escaped: no two schedules share a
full name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:  # `rota --help` prints names without loading the model
    from ...model import Schedule

DEFAULT = "default"


def full_name(tenant: str, name: str) -> str:
    """``acme/invoice``; a slash in the tenant is written %2F, a percent sign %25."""
    return f"{tenant.replace('%', '%25').replace('/', '%2F')}/{name}"


def short_name(tenant: str | None, name: str) -> str:
    """The name alone in the default tenant, unless it could be taken for another's full name."""
    if tenant in (None, DEFAULT) and "/" not in name:
        return name
    return full_name(tenant or DEFAULT, name)


def split_name(text: str) -> tuple[str, str] | None:
    """Tenant and name of a full name; None for a name alone."""
    tenant, slash, name = text.partition("/")
    return (unquote(tenant), name) if slash and tenant and name else None


def key_of(schedule: Schedule) -> str:
    return full_name(schedule.tenant, schedule.name)
