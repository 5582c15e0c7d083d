"""The Django app: rota's tables are brought up to date by ``migrate``, and tests use the test database."""

from __future__ import annotations

import sys
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate

from ...cli.parts.app_reference import load
from ...errors import ConfigError
from . import _url, given_out, rota_database
from .testing import let_django_copy_and_destroy


class RotaConfig(AppConfig):
    name = "rota.contrib.django"
    label = "rota"
    verbose_name = "rota"

    def ready(self) -> None:
        connection_created.connect(_follow, dispatch_uid="rota.follow")
        post_migrate.connect(_migrate, sender=self, dispatch_uid="rota.migrate")


def reference() -> str:
    """The setting ROTA_APP: where the project's app is."""
    found = getattr(settings, "ROTA_APP", None)
    if not isinstance(found, str):
        raise ConfigError(
            'the setting ROTA_APP is missing: name your app, such as ROTA_APP = "shop.jobs:app"'
        )
    return found


def _follow(connection: Any, **_: Any) -> None:
    """Move the app to the database that Django uses now: tests replace it by one of their own."""
    if connection.alias != rota_database() or reference().partition(":")[0] not in sys.modules:
        return  # not imported yet: it will ask for the database of that time
    app = load(reference())
    url = _url(connection.settings_dict)
    if app.settings.url in given_out and app.settings.url != url and not app.is_running:
        given_out.add(url)
        app.portal.close()
        app.runtime.use_store(url)
        let_django_copy_and_destroy(app, connection)


def _migrate(using: str, verbosity: int = 1, **_: Any) -> None:
    """After Django's own migrations: bring rota's tables in that database up to date."""
    if using != rota_database():
        return
    app = load(reference())
    if app.settings.url not in given_out:
        return  # its jobs are elsewhere: `rota migrate`
    done = app.portal.call(app.migrate)
    if verbosity and done:
        print(f"  rota: {len(done)} change{'s' * (len(done) != 1)} applied to the tables of jobs")
