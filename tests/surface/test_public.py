"""What ``import rota`` gives and costs."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest

import rota
from rota.tasks.handle import PROMISED_ORDER, plain

NAMES = [
    "Actor",
    "AlreadyRegistered",
    "AlreadyRunning",
    "AppClosed",
    "Attempt",
    "Backoff",
    "BoundTask",
    "Calendar",
    "Cancel",
    "ConfigError",
    "Context",
    "DuplicateJob",
    "Duration",
    "Event",
    "Fail",
    "FirePreview",
    "Forbidden",
    "Held",
    "IllegalMove",
    "InvalidSchedule",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobHandle",
    "JobOptions",
    "LeaseLost",
    "Limit",
    "MissingDriver",
    "NotFound",
    "OptionError",
    "Page",
    "PayloadError",
    "QuotaExceeded",
    "Rota",
    "RotaError",
    "RunSummary",
    "Schedule",
    "ScheduleOptions",
    "ScheduleRun",
    "SchemaMismatch",
    "Snooze",
    "State",
    "StoreError",
    "StoreUnavailable",
    "SyncCallWarning",
    "Task",
    "TaskOptions",
    "TaskSet",
    "TenantClient",
    "Why",
    "__version__",
    "new_id",
]

PROMISED_ERRORS = [
    "JobFailed",
    "JobCancelled",
    "DuplicateJob",
    "AlreadyRegistered",
    "InvalidSchedule",
    "PayloadError",
    "NotFound",
    "IllegalMove",
    "StoreUnavailable",
]

FIELDS = [
    "id",
    "tenant",
    "queue",
    "task",
    "state",
    "priority",
    "payload",
    "output",
    "error",
    "attempt",
    "max_attempts",
    "run_at",
    "scheduled_for",
    "origin",
    "schedule",
    "key",
    "tags",
    "parent",
    "cost_cents",
    "progress",
    "worker",
    "lease_until",
    "created_at",
    "started_at",
    "finished_at",
]


def python(program: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=cwd,
    )


def test_the_public_names_are_these() -> None:
    assert sorted(rota.__all__) == sorted(NAMES)
    imported: dict[str, Any] = {}
    exec("from rota import *", imported)
    assert set(imported) - {"__builtins__"} == set(NAMES)
    assert set(NAMES) <= set(dir(rota))
    with pytest.raises(AttributeError, match="Rotta"):
        rota.Rotta  # noqa: B018


def test_every_error_derives_from_one_root() -> None:
    for name in PROMISED_ERRORS:
        assert issubclass(getattr(rota, name), rota.RotaError)
    for name in ("Snooze", "Cancel", "Fail"):  # outcomes, not errors
        assert issubclass(getattr(rota, name), Exception)
        assert not issubclass(getattr(rota, name), rota.RotaError)


def test_every_public_name_is_explained() -> None:
    for name in NAMES:
        value = getattr(rota, name)
        if isinstance(value, type) and name != "State":
            assert value.__doc__, f"{name} has no docstring"
    public = [value for name, value in vars(rota.Rota).items() if not name.startswith("_")]
    undocumented = [value for value in public if inspect.isroutine(value) and not inspect.getdoc(value)]
    assert undocumented == []


def test_a_job_has_the_promised_fields() -> None:
    assert FIELDS == PROMISED_ORDER
    for name in FIELDS:
        assert hasattr(rota.Job, name)


async def test_a_job_as_plain_data_has_the_promised_fields_and_is_json(lite: rota.Rota) -> None:
    job = await lite.enqueue("work", {"n": 1}, tags=["a"])
    told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(plain(await job.refresh())))
    assert set(told) == set(PROMISED_ORDER)
    assert (told["state"], told["payload"], told["tags"], told["output"]) == ("queued", {"n": 1}, ["a"], None)


def test_the_package_is_marked_as_typed() -> None:
    assert resources.files("rota").joinpath("py.typed").is_file()


# --- what importing costs ----------------------------------------------------------------------------


HEAVY = (
    "psycopg",
    "sqlite3",
    "click",
    "rich",
    "uvloop",
    "sqlalchemy",
    "asyncpg",
    "pytest",
    "multiprocessing",
)


def test_importing_opens_nothing_and_brings_in_no_driver_and_no_command_line(tmp_path: Path) -> None:
    program = (
        "import sys, threading\nimport rota\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], threading.active_count())\n"
        "rota.Rota()\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], threading.active_count())\n"
    )
    done = python(program, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[] 1\n[] 1\n", "")
    assert list(tmp_path.iterdir()) == []


def test_a_producer_on_sqlite_never_imports_a_driver_of_postgresql(tmp_path: Path) -> None:
    program = (
        "import sys\nimport rota\napp = rota.Rota('sqlite:///jobs.db')\napp.enqueue_sync('work', {'n': 1})\n"
        "print([name for name in ('psycopg', 'click', 'rich') if name in sys.modules])\n"
    )
    assert python(program, cwd=tmp_path).stdout == "[]\n"


def test_a_missing_driver_is_named_with_the_remedy() -> None:
    program = (
        "import sys\nsys.modules['psycopg'] = None\nimport rota\n"
        "app = rota.Rota('postgresql://me:secret@db/shop')\n"
        "try:\n    app.enqueue_sync('work')\n"
        "except rota.MissingDriver as error:\n    print(error)\n"
    )
    done = python(program)
    assert 'pip install "rota[postgres]"' in done.stdout, done.stderr
    assert "secret" not in done.stdout


def test_the_aids_for_tests_do_not_import_pytest() -> None:
    program = (
        "import sys\nfrom rota.testing import FakeClock, assert_enqueued, drain, inline\n"
        "print([name for name in ('pytest', 'psycopg', 'click') if name in sys.modules])\n"
    )
    assert python(program).stdout == "[]\n"
