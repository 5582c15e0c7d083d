"""What can go wrong before any work begins: each with its exit code, its cause and its remedy."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cli.command import make_shop, rota_command

UNREACHABLE = "postgresql://someone:s3cret-canary@127.0.0.1:1/nowhere"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = make_shop(tmp_path)
    (folder / "broken.py").write_text("import no_such_library\n")
    (folder / "wrong.py").write_text("from rota import Rota\napp = Rota(poll_interval_ms=1)\n")
    return folder


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("shop:ap", "'ap' does not exist; shop has shop:app"),
        ("shop:not_an_app", "is of type int, not a Rota object; shop has shop:app"),
        ("shap:app", "no module 'shap'"),
        ("shop.deeper:app", "no module 'shop.deeper'"),
        ("shop.py:app", "use shop:app"),
        ("shop:", "use package.module:app"),
        ("broken:app", "broken.py, line 1: ModuleNotFoundError: No module named 'no_such_library'"),
        ("wrong:app", "poll_interval_ms=1 is out of range: 10 to 60000"),
    ],
)
def test_a_bad_app_reference_is_explained(shop: Path, reference: str, words: str) -> None:
    done = rota_command("--app", reference, "stats", cwd=shop)
    assert done.returncode == 2
    assert done.stderr.startswith("rota: ")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_app_is_found_without_its_name_if_it_is_the_only_one(shop: Path) -> None:
    assert rota_command("--app", "shop", "stats", cwd=shop).returncode == 0
    assert (shop / "shop.db").exists()


def test_a_worker_needs_an_app(tmp_path: Path) -> None:
    done = rota_command("worker", cwd=tmp_path)
    assert done.returncode == 2
    assert "--app MODULE:APP" in done.stderr


def test_a_worker_needs_tasks(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("from rota import Rota\napp = Rota('sqlite://:memory:')\n")
    done = rota_command("worker", "--app", "empty", cwd=tmp_path)
    assert done.returncode == 2
    assert "has no tasks" in done.stderr


def test_a_traceback_is_shown_only_with_debug(tmp_path: Path) -> None:
    done = rota_command("--url", "oracle://x", "stats", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    for extra, env in ((["--debug"], {}), ([], {"ROTA_DEBUG": "1"})):
        asked = rota_command(*extra, "--url", "oracle://x", "stats", cwd=tmp_path, **env)
        assert (asked.returncode, "Traceback" in asked.stderr) == (2, True)


@pytest.mark.parametrize("where", ["before", "after"])
def test_the_url_may_go_before_or_after_the_command(tmp_path: Path, where: str) -> None:
    given = ["--url", "sqlite:///here.db"]
    args = [*given, "stats"] if where == "before" else ["stats", *given]
    assert rota_command(*args, cwd=tmp_path).returncode == 0
    assert (tmp_path / "here.db").exists()


def test_the_last_url_wins(tmp_path: Path) -> None:
    rota_command("--url", "sqlite:///one.db", "stats", "--url", "sqlite:///two.db", cwd=tmp_path)
    assert sorted(p.name for p in tmp_path.glob("*.db")) == ["two.db"]


def test_a_given_url_wins_over_the_apps_own(shop: Path) -> None:
    assert rota_command("--app", "shop:app", "--url", "sqlite:///other.db", "stats", cwd=shop).returncode == 0
    assert (shop / "other.db").exists()
    assert not (shop / "shop.db").exists()


def test_an_unreachable_server_is_exit_code_3_and_keeps_the_password(shop: Path) -> None:
    for command in (["stats"], ["jobs", "list"], ["migrate"], ["worker", "--app", "shop"], ["health"]):
        done = rota_command("--url", UNREACHABLE, *command, cwd=shop)
        assert done.returncode == 3, (command, done.stderr)
        assert "s3cret-canary" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_health_of_an_unreachable_server_is_still_json(tmp_path: Path) -> None:
    done = rota_command("--url", UNREACHABLE, "health", "--json", cwd=tmp_path)
    told = msgspec.json.decode(done.stdout)
    assert (done.returncode, told["status"]) == (3, "unreachable")
    assert told["problems"]


def test_a_schema_that_is_missing_is_exit_code_4_until_migrated(postgres_url: str, shop: Path) -> None:
    def run(*args: str) -> tuple[int, str]:
        done = rota_command("--url", postgres_url, *args, cwd=shop)
        return done.returncode, done.stdout + done.stderr

    for command in (["stats"], ["health"], ["worker", "--app", "shop", "--burst"]):
        code, text = run(*command)
        assert (code, "rota migrate" in text) == (4, True), (command, text)
    code, text = run("migrate", "--check")
    assert (code, "pending" in text, "0001" in text) == (4, True, True)
    code, text = run("migrate")
    assert (code, "applied 0001" in text) == (0, True)
    assert run("migrate", "--check") == (0, "The schema is up to date.\n")
    assert run("migrate") == (0, "The schema is up to date: nothing to apply.\n")
    assert run("stats")[0] == 0
    assert run("worker", "--app", "shop", "--burst")[0] == 0


def test_migrations_are_printed_without_a_connection(tmp_path: Path) -> None:
    done = rota_command("--url", UNREACHABLE, "migrate", "--sql", cwd=tmp_path)
    assert done.returncode == 0
    assert "CREATE TABLE" in done.stdout.upper()


def test_migrate_check_and_sql_exclude_each_other(tmp_path: Path) -> None:
    done = rota_command("migrate", "--sql", "--check", cwd=tmp_path)
    assert (done.returncode, "cannot be combined" in done.stderr) == (2, True)
