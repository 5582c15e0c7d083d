"""Owns the end of Django's test databases, for which Django has no signal. Must never touch any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

from ...app import Rota


def let_django_copy_and_destroy(app: Rota, connection: Any) -> None:
    """Close the app's connections first: PostgreSQL neither copies nor drops a database that is in use.

    On SQLite, care for the write-ahead log, which Django does not know: it copies and removes one file.
    """
    creation, is_sqlite = connection.creation, connection.vendor == "sqlite"
    clone, destroy = creation.clone_test_db, creation.destroy_test_db

    def close_and_clone(
        suffix: str, verbosity: int = 1, autoclobber: bool = False, keepdb: bool = False
    ) -> None:
        app.portal.close()  # and start no thread: Django forks after this, for tests in parallel
        if is_sqlite:
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if not keepdb:
                _remove_log(creation.get_test_db_clone_settings(suffix)["NAME"])
        clone(suffix=suffix, verbosity=verbosity, autoclobber=autoclobber, keepdb=keepdb)

    def close_and_destroy(
        old_database_name: str | None = None,
        verbosity: int = 1,
        keepdb: bool = False,
        suffix: str | None = None,
    ) -> None:
        app.portal.call(sync_to_async(connections.close_all))  # those of async tasks, in Django's own thread
        app.portal.close()
        settings = creation.get_test_db_clone_settings(suffix) if suffix else connection.settings_dict
        name = settings["NAME"]
        destroy(old_database_name, verbosity=verbosity, keepdb=keepdb, suffix=suffix)
        if is_sqlite and not keepdb:
            _remove_log(name)

    creation.clone_test_db, creation.destroy_test_db = close_and_clone, close_and_destroy


def _remove_log(database: object) -> None:
    for end in ("-wal", "-shm"):
        Path(f"{database}{end}").unlink(missing_ok=True)
