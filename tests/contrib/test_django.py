"""A real Django project: its database, its migrate, its tests, its command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rota.contrib.django import _url
from rota.errors import ConfigError

pytest.importorskip("django")

SETTINGS = """
import os
SECRET_KEY = "test"
INSTALLED_APPS = ["rota.contrib.django", "shop"]
DATABASES = {{"default": {database}}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROTA_APP = "shop.jobs:app"
USE_TZ = True
"""
MODELS = """
from django.db import models

class Order(models.Model):
    state = models.TextField(default="new")
"""
JOBS = """
from rota import Rota
from rota.contrib.django import database_url, fresh_connections

app = Rota(database_url())

@app.task(queue="mail")
@fresh_connections
def send_receipt(order_id: int) -> str:
    from shop.models import Order
    Order.objects.filter(pk=order_id).update(state="sent")
    return "sent"

@app.task
@fresh_connections
async def count() -> int:
    from shop.models import Order
    return await Order.objects.acount()
"""
TESTS = """
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase
from rota.testing import assert_enqueued, drain_sync, reset_sync
from shop.jobs import app, count, send_receipt
from shop.models import Order

def buy(fails=False):
    with transaction.atomic():
        order = Order.objects.create()
        send_receipt.options(connection=connection).enqueue_sync(order_id=order.pk)
        if fails:
            raise RuntimeError("no")
    return order

class CommittedTest(TransactionTestCase):
    def setUp(self):
        reset_sync(app)

    def test_the_job_runs_on_the_test_database(self):
        assert "test" in app.settings.url, app.settings.url
        order = buy()
        assert_enqueued(send_receipt.options(queue="mail"), order_id=order.pk)
        assert drain_sync(app) == 1
        order.refresh_from_db()
        assert order.state == "sent"

    def test_a_rolled_back_order_leaves_no_job(self):
        try:
            buy(fails=True)
        except RuntimeError:
            pass
        assert drain_sync(app) == 0

    def test_an_async_task_gets_a_new_connection_for_a_broken_one(self):
        self.run_count()
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
                    " AND application_name <> 'rota'"
                )
                assert cursor.fetchall() == [(True,)]
        self.run_count()

    def run_count(self):
        job = count.enqueue_sync()
        assert drain_sync(app) == 1
        assert app.job_sync(job.id).state == "succeeded", app.job_sync(job.id).error

class RolledBackTest(TestCase):
    def test_the_job_is_in_the_transaction_of_the_test(self):
        order = buy()
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM {jobs} WHERE task = 'send_receipt'")
            assert cursor.fetchone() == (1,)
"""
MANAGE = """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""


class Project:
    def __init__(self, folder: Path, database: str, jobs: str) -> None:
        self.folder = folder
        (folder / "shop" / "migrations").mkdir(parents=True)
        for name, text in {
            "settings.py": SETTINGS.format(database=database), "manage.py": MANAGE, "shop/__init__.py": "",
            "shop/migrations/__init__.py": "", "shop/models.py": MODELS, "shop/jobs.py": JOBS,
            "shop/tests.py": TESTS.format(jobs=jobs),
        }.items():  # fmt: skip
            self.write(name, text)
        self.manage("makemigrations", "shop")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def manage(self, *args: str) -> str:
        return self.run("manage.py", *args)

    def run(self, *args: str) -> str:
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("ROTA_", "DATABASE_URL"))}
        done = subprocess.run(
            [sys.executable, *args], cwd=self.folder, capture_output=True, text=True, timeout=100,
            env=environ | {"DJANGO_SETTINGS_MODULE": "settings"},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    if request.param == "sqlite":
        name, test = str(tmp_path / "shop.db"), str(tmp_path / "test.db")
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": name, "TEST": {"NAME": test}}
        return Project(tmp_path, repr(database), "rota_jobs")
    url = request.getfixturevalue("postgres_url")
    rest, name = url.removeprefix("postgresql://").rsplit("/", 1)
    who, _, where = rest.rpartition("@")
    host, _, port = where.rpartition(":")
    user, _, password = who.partition(":")
    database = {
        "ENGINE": "django.db.backends.postgresql", "NAME": name.partition("?")[0], "USER": user,
        "PASSWORD": password, "HOST": host, "PORT": port,
    }  # fmt: skip
    return Project(tmp_path, repr(database), "rota.jobs")


@pytest.mark.parametrize("project", ["sqlite", "postgres"], indirect=True)
def test_a_django_project_migrates_tests_and_runs_its_jobs(project: Project) -> None:
    assert "Ran 4 tests" in project.manage("test", "--noinput")
    assert "Ran 4 tests" in project.manage("test", "--noinput", "--parallel", "2")
    assert not list(project.folder.glob("test*")), "Django removes its test databases, and rota their logs"
    assert "rota: " in project.manage("migrate")
    assert "rota: " not in project.manage("migrate")
    project.manage("shell", "-c", "from shop.tests import buy; buy()")
    assert "send_receipt" in project.manage("rota", "jobs", "list")
    project.manage("rota", "worker", "--burst")
    orders = "from shop.models import Order; print([o.state for o in Order.objects.all()])"
    assert "['sent']" in project.manage("shell", "-c", orders)
    project.manage("rota", "jobs", "enqueue", "count")
    page = project.manage("rota", "jobs", "list", "--limit", "1", "--settings=settings")
    assert "More: manage.py rota jobs list --app shop.jobs:app --limit 1 --cursor " in page
    called = "from django.core.management import call_command; call_command('rota', 'stats', '--json')"
    assert '"succeeded":1' in project.manage("shell", "-c", called).replace(" ", "")
    assert "succeeded" in project.run("-m", "rota", "jobs", "list", "--app", "shop.jobs:app")


def test_tests_on_djangos_database_in_memory_name_the_remedy(tmp_path: Path) -> None:
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "shop.db")}
    project = Project(tmp_path, repr(database), "rota_jobs")
    with pytest.raises(AssertionError, match=r"into memory; .* in Django.s with .TEST.: {.NAME.: …}"):
        project.manage("test", "shop.tests.RolledBackTest")


def test_the_command_asks_for_the_setting_that_is_missing(tmp_path: Path) -> None:
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}
    project = Project(tmp_path, repr(database), "rota_jobs")
    project.write("settings.py", SETTINGS.format(database="{}").replace("ROTA_APP", "OTHER"))
    with pytest.raises(AssertionError, match=r"^rota: the setting ROTA_APP is missing"):
        project.manage("rota", "stats")


@pytest.mark.parametrize(
    ("database", "url"),
    [
        ({"NAME": "shop"}, "postgresql:///shop"),
        (
            {"NAME": "s/h", "USER": "an@", "PASSWORD": "p:/?#w", "HOST": "db", "PORT": 5433},
            "postgresql://an%40:p%3A%2F%3F%23w@db:5433/s%2Fh",
        ),
        (
            {"NAME": "shop", "HOST": "/run/postgresql", "OPTIONS": {"sslmode": "require", "pool": True}},
            "postgresql:///shop?sslmode=require&host=%2Frun%2Fpostgresql",
        ),
        ({"NAME": "shop", "HOST": "::1"}, "postgresql://[::1]/shop"),
    ],
)
def test_the_url_has_what_django_is_given(database: dict[str, object], url: str) -> None:
    assert _url({"ENGINE": "django.db.backends.postgresql", **database}) == url


def test_a_database_without_a_store_is_refused_with_the_way() -> None:
    with pytest.raises(ConfigError, match=r"mysql.*on_commit"):
        _url({"ENGINE": "django.db.backends.mysql", "NAME": "shop"})
