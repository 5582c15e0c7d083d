"""rota in a Django project: the same database, ``manage.py migrate``, ``manage.py rota``, Django's tests.

Add ``"rota.contrib.django"`` to INSTALLED_APPS, and name your app in ROTA_APP::

    # shop/jobs.py
    app = Rota(database_url())

Owns the way from Django's settings to a store URL. Must never write to the database itself.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ParamSpec, TypeVar, cast
from urllib.parse import quote, urlencode

from ...errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["database_url", "fresh_connections"]

# Options of Django itself; every other one is libpq's, as it is rota's.
_DJANGO_OPTIONS = {"assume_role", "isolation_level", "pool", "server_side_binding", "cursor_factory"}
given_out: set[str] = set()  # what database_url returned: only such an app follows Django's database


def database_url(alias: str | None = None) -> str:
    """The store URL of Django's own database, so that jobs join Django's transactions.

    Of the database ``alias``, else the setting ROTA_DATABASE, else ``default``. Sets Django up if nothing
    has yet: a worker imports the module that calls this.
    """
    import django
    from django.apps import apps
    from django.db import connections

    if not (apps.ready or apps.loading):
        django.setup()
    url = _url(connections[alias or rota_database()].settings_dict)
    given_out.add(url)
    return url


def rota_database() -> str:
    """The alias of the database with the jobs."""
    from django.conf import settings

    return str(getattr(settings, "ROTA_DATABASE", "default"))


def fresh_connections(fn: Callable[P, R]) -> Callable[P, R]:
    """Close Django's broken connections before the task, so that a restart of the server fails no later job.

    Put it below ``@app.task``. Around a plain ``def``, which has a thread to itself, it also closes outdated
    connections, before and after, as Django does around a request. All ``async def`` tasks of a process
    share one thread for their models, and its connection: there it closes only what is broken.
    """
    if inspect.iscoroutinefunction(fn):
        return cast(Callable[P, R], _fresh_async(fn))

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        from django.db import close_old_connections

        close_old_connections()
        try:
            return fn(*args, **kwargs)
        finally:
            close_old_connections()

    return call


def _fresh_async(fn: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    @functools.wraps(fn)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        from asgiref.sync import sync_to_async

        await sync_to_async(_close_broken_connections)()
        return await fn(*args, **kwargs)

    return call


def _close_broken_connections() -> None:
    """Of this thread."""
    from django.db import connections

    for connection in connections.all(initialized_only=True):
        if connection.connection and not connection.in_atomic_block and not connection.is_usable():
            connection.close()


def _url(database: Mapping[str, Any]) -> str:
    engine, name = str(database["ENGINE"]), str(database["NAME"])
    if "postgresql" in engine or "postgis" in engine:
        return _postgres_url(database, name)
    if "sqlite3" in engine or "spatialite" in engine:
        if name == ":memory:" or "mode=memory" in name:
            return "sqlite://:memory:"  # Django's own cannot be shared
        return f"sqlite:///{quote(os.path.abspath(name))}"
    raise ConfigError(
        f"rota has no store for Django's ENGINE {engine!r}: give Rota a URL of its own, "
        "postgresql://… or sqlite:///…, and enqueue with transaction.on_commit"
    )


def _postgres_url(database: Mapping[str, Any], name: str) -> str:
    options = {
        key: value
        for key, value in (database.get("OPTIONS") or {}).items()
        if key not in _DJANGO_OPTIONS and isinstance(value, (str, int))
    }
    host = str(database.get("HOST") or "")
    if host.startswith("/"):  # the directory of a socket
        options["host"], host = host, ""
    if ":" in host and not host.startswith("["):  # IPv6
        host = f"[{host}]"
    user, password = str(database.get("USER") or ""), str(database.get("PASSWORD") or "")
    who = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    port = f":{database['PORT']}" if database.get("PORT") else ""
    query = f"?{urlencode(options, quote_via=quote)}" if options else ""
    return f"postgresql://{who}{'@' if who else ''}{host}{port}/{quote(name, safe='')}{query}"
