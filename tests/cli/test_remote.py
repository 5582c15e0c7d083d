"""The same commands against a real ``rota serve``: they print and do what they do on the store itself.

Heritage: Q8, one clear answer for each mistake; Q9, the same from the command line, with ``--json``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.command import eventually, make_shop, rota_command, said, started
from rota.cli.root import root

STORE = "sqlite:///shop.db"
UNKNOWN = "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60"
HOLIDAYS = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20991225\nEND:VEVENT\nEND:VCALENDAR\n"


class Both:
    """One store, reached directly and through the server."""

    def __init__(self, folder: Path, api: str, token: str) -> None:
        self.folder, self.api, self.token = folder, api, token

    def near(self, *args: str, stdin: str | None = None) -> Result:
        return CliRunner(env={"ROTA_URL": STORE}).invoke(root, args, input=stdin)

    def far(self, *args: str, stdin: str | None = None, token: str | None = None) -> Result:
        # A store that is not there: whatever looks at it instead of the server fails.
        env = {"ROTA_URL": "sqlite:////nowhere/x.db", "ROTA_API": self.api, "ROTA_TOKEN": token or self.token}
        return CliRunner(env=env).invoke(root, args, input=stdin)

    def do(self, *args: str) -> str:
        result = self.far(*args)
        assert result.exit_code == 0, result.output
        return result.stdout

    def as_json(self, *args: str) -> Any:
        return msgspec.json.decode(self.do(*args, "--json"))


def make_token(folder: Path, *args: str) -> str:
    done = rota_command("token", "create", *args, "--url", STORE, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A server on a store with a bit of everything; the tests of this file share it."""
    folder = make_shop(tmp_path_factory.mktemp("remote"))
    token = make_token(folder, "--role", "admin")
    with started("serve", "--url", STORE, "--port", "0", cwd=folder):
        found = eventually(lambda: re.search(r"API at (http://127\.0\.0\.1:\d+)", said(folder)), "no server")
        yield Both(folder, found[1], token)


@pytest.fixture
def both(server: Both, monkeypatch: pytest.MonkeyPatch) -> Both:
    monkeypatch.chdir(server.folder)
    return server


def still(text: str) -> str:
    """Without what the passing of time changes: the ages, and the widths of the columns that hold them."""
    timeless = re.sub(r"\d+(\.\d+)? (ms|s|min|h|d)\b( ago)?|\bnow\b", "T", text)
    return re.sub(r" +|─+|━+", " ", timeless)


def test_reads_through_the_server_match_the_store(both: Both) -> None:
    job = both.do("jobs", "enqueue", "add", "--payload", '{"a": 1}', "--tag", "look", "--delay", "1h").strip()
    both.do("jobs", "enqueue", "boom", "--tag", "look")
    both.do(
        "schedules", "create", "--name", "look", "--task", "add", "--cron", "0 3 * * *", "--queue", "mail"
    )
    both.do("schedules", "trigger", "look")
    (both.folder / "look.ics").write_text(HOLIDAYS)
    both.do("calendars", "import", "look.ics", "--name", "look")
    both.do("limits", "set", "key:a/b:*", "--running", "3", "--rate", "5/m")
    for words in (
        "limits list", "limits show key:a/b:*", "limits show key:a/b:7",
        "jobs list --tag look", "jobs list --since 1h --not-task nope", f"jobs show {job}", f"jobs why {job}",
        "schedules list", "schedules show look", "schedules preview look -n 3", "runs list",
        "runs list --schedule look --days 30", "calendars list", "calendars show look", "workers list",
        "stats",
    ):  # fmt: skip
        near, far = both.near(*words.split()), both.far(*words.split())
        assert (near.exit_code, far.exit_code) == (0, 0), (words, near.output, far.output)
        assert still(far.stdout) == still(near.stdout), words
        if words != "stats":  # its ages move
            near, far = both.near(*words.split(), "--json"), both.far(*words.split(), "--json")
            assert msgspec.json.decode(far.stdout) == msgspec.json.decode(near.stdout), words


def test_jobs_are_enqueued_updated_cancelled_retried_and_deleted_through_the_server(both: Both) -> None:
    job = both.as_json(
        "jobs", "enqueue", "add", "--payload", '{"a": 1, "b": 2}', "--key", "far", "--delay", "1h"
    )
    assert (job["payload"], job["state"]) == ({"a": 1, "b": 2}, "queued")
    again = both.far("jobs", "enqueue", "add", "--key", "far")
    assert (again.stdout.strip(), "already exists with this key" in again.stderr) == (job["id"], True)
    taken = both.far("jobs", "enqueue", "add", "--key", "far", "--on-conflict", "raise")
    assert (taken.exit_code, job["id"] in taken.stderr) == (1, True)
    assert "priority 5" in both.do("jobs", "update", job["id"], "--now", "--priority", "5")
    assert "cancelled" in both.do("jobs", "cancel", job["id"], "--reason", "from afar")
    assert both.as_json("jobs", "show", job["id"])["error"]["message"] == "from afar"
    assert "queued  due now" in both.do("jobs", "retry", job["id"])
    assert "deleted" in both.do("jobs", "delete", job["id"], "--yes")
    assert both.near("jobs", "show", job["id"]).exit_code == 1


def test_limits_are_set_and_dropped_through_the_server(both: Both) -> None:
    assert both.as_json("limits", "set", "queue:far", "--running", "3")["most"] == 3
    refused = both.far("limits", "set", "queue:far", "--rate", "fast")
    assert (refused.exit_code, "rate='fast': is not a rate" in refused.stderr) == (2, True)
    assert both.do("limits", "drop", "queue:far") == "Dropped limit queue:far.\n"
    assert both.far("limits", "show", "queue:far").exit_code == 1
    job = both.as_json("jobs", "enqueue", "add", "--concurrency-key", "k", "--units", "2", "--price", "1")
    assert (job["concurrency_key"], job["units"], job["price"]) == ("k", 2, 1.0)


def test_bulk_actions_work_through_the_server(both: Both) -> None:
    for _ in range(12):
        both.near("jobs", "enqueue", "add", "--tag", "many")
    dry = both.far("jobs", "cancel", "--tag", "many", "--dry-run")
    assert "12 live jobs with tag many will be cancelled" in dry.stdout
    assert both.far("jobs", "cancel", "--tag", "many", stdin="n\n").exit_code == 1
    assert both.do("jobs", "cancel", "--tag", "many", "--yes", "--rate", "600/s") == "12 jobs cancelled.\n"
    assert both.do("jobs", "retry", "--tag", "many", "--state", "cancelled", "--yes") == "12 jobs queued.\n"
    assert both.far("jobs", "delete", "--tag", "many", stdin="12\n").exit_code == 0
    assert both.as_json("jobs", "list", "--tag", "many")["items"] == []


def test_waiting_for_a_job_works_through_the_server(both: Both) -> None:
    with started("worker", "--app", "shop:app", "--url", STORE, cwd=both.folder):
        assert both.do("jobs", "enqueue", "add", "--payload", '{"a": 2, "b": 3}', "--wait") == "5\n"
        failed = both.far(
            "jobs", "enqueue", "boom", "--payload", '{"text": "no luck"}', "--max-attempts", "1", "--wait"
        )
        assert (failed.exit_code, "ValueError: no luck" in failed.stderr) == (1, True)
        assert "shop" in both.do("workers", "list") or "add" in both.do("workers", "list")


def test_schedules_are_managed_through_the_server(both: Both) -> None:
    made = both.as_json(
        "schedules", "create", "--name", "far", "--task", "add", "--cron", "@hourly", "--timeout", "1m",
        "--payload", '{"a": 1}', "--start-at", "2020-01-01T00:00+01:00", "--tenant", "acme",
    )  # fmt: skip
    assert (made["timeout"], made["payload"], made["start_at"]) == (60.0, {"a": 1}, "2019-12-31T23:00:00Z")
    of = ("--tenant", "acme")
    both.do("schedules", "update", "far", "--every", "15m", "--description", "often", *of)
    shown = both.as_json("schedules", "show", "far", *of)
    assert (shown["cron"], shown["every"], shown["description"]) == (None, 900.0, "often")
    assert "far  disabled" in both.do("schedules", "disable", "far", "--reason", "quiet", *of)
    assert "far  enabled  next run" in both.do("schedules", "enable", "far", *of)
    asked = (
        "schedules",
        "backfill",
        "far",
        "--since",
        "2020-01-01T00:00Z",
        "--until",
        "2020-01-01T01:00Z",
        *of,
    )
    assert "5 fire times without a job" in both.do(*asked)
    assert "5 jobs created" in both.do(*asked, "--apply", "--yes")
    both.do("schedules", "delete", "far", "--yes", *of)
    assert both.far("schedules", "show", "far", *of).exit_code == 1


def test_a_crontab_and_a_calendar_are_imported_through_the_server(both: Both) -> None:
    (both.folder / "crontab").write_text("0 3 * * * /bin/sweep\n")
    done = both.do("schedules", "import", "crontab", "crontab", "--task", "shell", "--apply")
    assert "1 schedule created" in done
    again = both.far("schedules", "import", "crontab", "crontab", "--task", "shell", "--apply")
    assert (again.exit_code, "already has a schedule" in again.stderr) == (1, True)
    (both.folder / "far.ics").write_text(HOLIDAYS)
    assert "1 date" in both.do("calendars", "import", "far.ics", "--name", "far")
    assert both.as_json("calendars", "list")["items"][0]["dates"] == ["2099-12-25"]
    assert "deleted" in both.do("calendars", "delete", "far", "--yes")


def test_heritage_q8_and_q9_every_mistake_has_its_own_error_on_store_and_server(both: Both) -> None:
    job = both.do("jobs", "enqueue", "add").strip()
    both.do("jobs", "cancel", job)
    both.do("schedules", "create", "--name", "taken", "--task", "add", "--every", "1h")
    make = ["schedules", "create", "--name", "n", "--task", "add"]
    for code, words, args in (
        (2, "not a job id", ["jobs", "show", "abc"]),
        (2, "not a job id", ["jobs", "list", "--parent", "abc"]),
        (1, UNKNOWN, ["jobs", "show", UNKNOWN]),
        (1, UNKNOWN, ["jobs", "retry", UNKNOWN]),
        (1, "which is cancelled", ["jobs", "cancel", job]),
        (2, "--payload", ["jobs", "enqueue", "add", "--payload", "{oops"]),
        (2, "--name", ["schedules", "create", "--task", "add", "--every", "1h"]),
        (2, "--cron", [*make, "--cron", "61 * * * *"]),
        (2, "--calendar", [*make, "--every", "1h", "--calendar", "x"]),
        (2, "--at", [*make, "--at", "2020-01-01T00:00Z"]),
        (2, "already has a schedule", [*make, "--name", "taken", "--every", "1h"]),
        (2, "--enabled", [*make, "--every", "1h", "--enabled=maybe"]),
        (1, "'nope'", ["schedules", "show", "nope"]),
        (1, "'nope'", ["schedules", "update", "nope", "--every", "5m"]),
        (2, "--until", ["schedules", "backfill", "taken", "--since", "2020-01-01T00:00Z", "--until",
                        "2999-01-01T00:00Z"]),
        (1, "'nope'", ["calendars", "show", "nope"]),
    ):  # fmt: skip
        for result in (both.near(*args), both.far(*args)):
            assert (result.exit_code, words in result.stderr) == (code, True), (args, result.output)
            assert "Traceback" not in result.output


def test_a_token_without_permission_is_denied_and_an_invalid_one_is_not_authenticated(both: Both) -> None:
    job = both.do("jobs", "enqueue", "add", "--payload", '{"note": "canary"}').strip()
    viewer = make_token(both.folder, "--role", "viewer")
    refused = both.far("jobs", "cancel", job, token=viewer)
    assert (refused.exit_code, "needs the role operator" in refused.stderr) == (1, True)
    assert "canary" not in both.far("jobs", "show", job, token=viewer).stdout
    tenant = make_token(both.folder, "--role", "operator", "--tenant", "acme")
    assert both.far("jobs", "show", job, token=tenant).exit_code == 1
    assert both.far("stats", token=tenant).exit_code == 0
    for wrong in (viewer[:-1] + "x", "rota_nothing_at-all"):
        stranger = both.far("jobs", "list", token=wrong)
        assert (stranger.exit_code, "token is missing, invalid or expired" in stranger.stderr) == (2, True)
        assert wrong not in stranger.output


def test_the_token_is_read_from_a_file_and_a_typed_one_causes_a_warning(both: Both) -> None:
    (both.folder / "token").write_text(f"{both.token}\n")
    done = rota_command("stats", "--api", both.api, cwd=both.folder, ROTA_TOKEN_FILE="token")
    assert (done.returncode, done.stderr) == (0, "")
    done = rota_command("stats", "--api", both.api, "--token", both.token, cwd=both.folder)
    assert (done.returncode, "--token is visible in the process list" in done.stderr) == (0, True)
    assert both.token not in done.stderr
    away = "postgresql://u:canary@127.0.0.1:1/x"
    done = rota_command("stats", "--url", away, cwd=both.folder, ROTA_CA_FILE="ca.pem")
    assert "the password in --url is visible in the process list" in done.stderr
    assert "canary" not in done.stderr and "ROTA_CA_FILE" not in done.stderr
    none = rota_command("stats", "--api", both.api, cwd=both.folder)
    assert (none.returncode, "ROTA_TOKEN" in none.stderr) == (2, True)
    gone = rota_command("stats", "--api", both.api, cwd=both.folder, ROTA_TOKEN_FILE="nowhere")
    assert (gone.returncode, "ROTA_TOKEN_FILE=nowhere" in gone.stderr) == (2, True)


def test_commands_that_need_a_store_reject_api(both: Both) -> None:
    for command in (["migrate"], ["worker", "--app", "shop"], ["bench", "--yes"], ["serve"]):
        result = CliRunner().invoke(root, ["--api", both.api, *command])
        assert (result.exit_code, "not through a server" in result.stderr) == (2, True), (
            command,
            result.output,
        )
    both_given = CliRunner().invoke(root, ["stats", "--api", both.api, "--url", STORE])
    assert (both_given.exit_code, "--api and --url" in both_given.stderr) == (2, True)


def test_a_typed_url_wins_over_an_api_in_the_environment(both: Both) -> None:
    env = {"ROTA_API": "http://127.0.0.1:1", "ROTA_TOKEN": "x"}
    assert CliRunner(env=env).invoke(root, ["stats", "--url", STORE]).exit_code == 0


def test_a_page_of_the_server_shows_the_next_command_without_the_token(both: Both) -> None:
    for _ in range(3):
        both.near("jobs", "enqueue", "add", "--tag", "page")
    result = both.far("jobs", "list", "--tag", "page", "--limit", "2")
    more = result.stderr.strip()
    assert more.startswith(f"More: rota jobs list --api {both.api} --tag page --limit 2 --cursor ")
    assert both.token not in more
    assert len(both.far(*more.removeprefix("More: rota ").split()).stdout.splitlines()) == 2


def test_health_through_the_server_names_the_server(both: Both) -> None:
    near, far = (msgspec.json.decode(face("health", "--json").stdout) for face in (both.near, both.far))
    assert (near.pop("store"), far.pop("store")) == (STORE, both.api)
    assert near.pop("oldest_due_s") <= far.pop("oldest_due_s")
    assert near == far
