"""``rota schedules``, ``runs`` and ``calendars``: flags arrive, mistakes are named, empty lists teach."""

from __future__ import annotations

import os
import pty
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.command import environment, make_shop, rota_command
from rota.cli.commands.schedule_import import name_of
from rota.cli.root import root

HOSTILE = "\x1b]0;owned\x07\x1b[31mred\u202eevil"
CRONTAB = """\
# machines
MAILTO=ops@example.com
CRON_TZ=Europe/Berlin
0 3 * * * /usr/local/bin/backup.sh --full >/dev/null 2>&1
61 3 * * * /bin/never
@daily cd /srv/shop && ./sweep.py
@reboot /bin/once
0 3 * * * /usr/local/bin/backup.sh --full
5 4 * * 0
*/5 * * * * date +\\%s; echo 50%
"""
HOLIDAYS = """\
BEGIN:VCALENDAR
BEGIN:VEVENT
DTSTART;VALUE=DATE:20991225
SUMMARY:Christmas
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20991226
SUMMARY:Boxing Day
END:VEVENT
END:VCALENDAR
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the app, the current one, in which the command line runs within this process."""
    make_shop(tmp_path)
    (tmp_path / "crontab").write_text(CRONTAB)
    (tmp_path / "holidays.ics").write_text(HOLIDAYS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_URL", "sqlite:///shop.db")
    return tmp_path


def invoke(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(root, args, input=stdin)


def as_json(*args: str) -> Any:
    return msgspec.json.decode(invoke(*args, "--json").stdout)


def do(*args: str) -> str:
    result = invoke(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def create(name: str, *args: str, task: str = "add") -> Any:
    rule = () if {"--cron", "--every", "--at"} & set(args) else ("--cron", "0 3 * * *")
    return as_json("schedules", "create", "--name", name, "--task", task, *rule, *args)


def names() -> list[str]:
    return [schedule["name"] for schedule in as_json("schedules", "list")["items"]]


# --- create --------------------------------------------------------------------------------------


def test_every_flag_of_create_reaches_the_schedule(folder: Path) -> None:
    do("calendars", "import", "holidays.ics", "--name", "holidays")
    create(
        "nightly", "--cron", "30 3 * * MON-FRI", "--timezone", "Europe/Berlin", "--payload", '{"a": 1}',
        "--disabled", "--tenant", "acme", "--queue", "mail", "--priority", "7", "--max-attempts", "9",
        "--timeout", "1m", "--start-at", "2030-01-01T00:00+01:00", "--until", "2040-01-01T00:00Z", "--missed",
        "all", "--missed-cap", "5", "--missed-window", "2d", "--overlap", "skip", "--jitter", "90",
        "--description", "sweeps", "--calendar", "holidays", "--calendar-mode", "next_working_day",
    )  # fmt: skip
    stored = as_json("schedules", "show", "nightly", "--tenant", "acme")
    expected = {
        "name": "nightly", "task": "add", "cron": "30 3 * * MON-FRI", "timezone": "Europe/Berlin",
        "payload": {"a": 1}, "enabled": False, "tenant": "acme", "queue": "mail", "priority": 7,
        "max_attempts": 9, "timeout": 60.0, "start_at": "2029-12-31T23:00:00Z",
        "until": "2040-01-01T00:00:00Z", "missed": "all", "missed_cap": 5, "missed_window": 172_800.0,
        "overlap": "skip", "jitter": 90.0, "description": "sweeps", "calendar": "holidays",
        "calendar_mode": "next_working_day", "source": "user", "every": None, "at": None,
    }  # fmt: skip
    assert {name: stored[name] for name in expected} == expected
    assert len(stored["fires"]) == 5


def test_every_and_at_are_rules_too(folder: Path) -> None:
    assert create("often", "--every", "1h30m")["every"] == 5400
    assert create("once", "--at", "2099-01-31T08:00+02:00")["at"] == "2099-01-31T06:00:00Z"


@pytest.mark.parametrize(
    ("args", "flag"),
    [
        (["--cron", "61 * * * *"], "--cron"),
        (["--cron", "*/0 * * * *"], "--cron"),
        (["--cron", "0 0 31 2 *"], "--cron"),
        (["--cron", "1 " * 5000], "--cron"),
        (["--cron", "@every 5m"], "--every"),
        (["--every", "soon"], "--every"),
        (["--every", "0"], "--every"),
        (["--at", "tomorrow"], "--at"),
        (["--at", "2099-01-31T08:00"], "--at"),
        ([], "--cron, --every or --at"),
        (["--cron", "@daily", "--every", "5m"], "--cron and --every"),
        (["--every", "5m", "--timezone", "Mars/Olympus"], "--timezone"),
        (["--every", "5m", "--payload", "[1]"], "--payload"),
        (["--every", "5m", "--queue", ""], "--queue"),
        (["--every", "5m", "--priority", "99999999999"], "--priority"),
        (["--every", "5m", "--max-attempts", "0"], "--max-attempts"),
        (["--every", "5m", "--timeout", "0"], "--timeout"),
        (["--every", "5m", "--start-at", "noon"], "--start-at"),
        (["--every", "5m", "--start-at", "2031-01-01T00:00Z", "--until", "2030-01-01T00:00Z"], "--until"),
        (["--every", "5m", "--missed", "some"], "--missed"),
        (["--every", "5m", "--missed-cap", "0"], "--missed-cap"),
        (["--every", "5m", "--missed-window", "x"], "--missed-window"),
        (["--every", "5m", "--overlap", "maybe"], "--overlap"),
        (["--every", "5m", "--jitter", "9w"], "--jitter"),
        (["--every", "5m", "--calendar-mode", "never"], "--calendar-mode"),
        (["--every", "5m", "--calendar", ""], "--calendar"),
        (["--every", "5m", "--description", "x" * 2001], "--description"),
        (["--every", "5m", "--tenant", ""], "--tenant"),
        (["--every", "5m", "--name", "a\x1bb"], "--name"),
        (["--every", "5m", "--task", ""], "--task"),
    ],
)
def test_a_bad_flag_is_named_and_nothing_is_sent(folder: Path, args: list[str], flag: str) -> None:
    result = invoke("schedules", "create", "--name", "n", "--task", "add", *args)
    assert result.exit_code == 2, result.output
    assert flag in result.stderr
    assert "\x1b" not in result.stderr
    assert len(result.stderr) < 1000
    assert not (folder / "shop.db").exists()


def test_errors_found_by_the_store_name_their_option(folder: Path) -> None:
    result = invoke(
        "schedules", "create", "--name", "n", "--task", "t", "--every", "5m", "--calendar", "gone"
    )
    assert (result.exit_code, "--calendar" in result.stderr) == (2, True)
    late = invoke("schedules", "create", "--name", "n", "--task", "t", "--at", "2020-01-01T00:00Z")
    assert (late.exit_code, "--at" in late.stderr) == (2, True)
    assert names() == []


def test_a_name_is_taken_only_once(folder: Path) -> None:
    create("nightly")
    again = invoke("schedules", "create", "--name", "nightly", "--task", "add", "--every", "5m")
    assert (again.exit_code, "already has a schedule" in again.stderr) == (2, True)


def test_a_payload_that_does_not_fit_the_apps_task_is_rejected(folder: Path) -> None:
    done = rota_command(
        "--app", "shop", "schedules", "create", "--name", "n", "--task", "add", "--every", "5m",
        "--payload", '{"a": 1}', cwd=folder,
    )  # fmt: skip
    assert (done.returncode, "--payload" in done.stderr, "'b'" in done.stderr) == (2, True, True)


def on_a_terminal(folder: Path, *args: str) -> tuple[int, str]:
    leader, follower = pty.openpty()
    env = environment(TERM="xterm", ROTA_URL="sqlite:///shop.db", COLUMNS="120")
    process = subprocess.Popen(
        [sys.executable, "-m", "rota", *args], cwd=folder, env=env, stdout=follower, stderr=follower
    )
    os.close(follower)
    received = b""
    try:
        while chunk := os.read(leader, 65536):
            received += chunk
    except OSError:  # the child's end is closed
        pass
    os.close(leader)
    return process.wait(30), received.decode().replace("\r\n", "\n")


def test_a_terminal_points_at_the_error_in_a_cron_expression(folder: Path) -> None:
    code, text = on_a_terminal(folder, "schedules", "validate", "--cron", "0 25 * * *")
    assert code == 2
    assert "'--cron': hour, column 3: value 25 is out of range; use 0 to 23" not in text
    assert "Invalid value for '--cron': value 25 is out of range; use 0 to 23" in text
    assert "\n    0 25 * * *\n      ^\n" in text


# --- update and the switches ---------------------------------------------------------------------


def test_an_update_changes_what_is_given_and_keeps_the_rest(folder: Path) -> None:
    before = create("nightly", "--queue", "mail", "--priority", "3", "--description", "old")
    do("schedules", "update", "nightly", "--every", "15m", "--description", "new", "--clear", "queue")
    after = as_json("schedules", "show", "nightly")
    assert (after["cron"], after["every"], after["description"]) == (None, 900.0, "new")
    assert (after["queue"], after["priority"], after["id"]) == (None, 3, before["id"])


def test_start_at_and_until_can_be_cleared(folder: Path) -> None:
    create("n", "--every", "1h", "--start-at", "2030-01-01T00:00Z", "--until", "2040-01-01T00:00Z")
    do("schedules", "update", "n", "--clear", "until", "--description", "x")
    after = as_json("schedules", "show", "n")
    assert (after["start_at"], after["until"]) == ("2030-01-01T00:00:00Z", None)
    do("schedules", "update", "n", "--clear", "start-at")
    assert as_json("schedules", "show", "n")["start_at"] is None


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "pass at least one option"),
        (["--cron", "x"], "--cron"),
        (["--cron", "@daily", "--every", "5m"], "--cron and --every"),
        (["--until", "2030-01-01T00:00Z", "--clear", "until"], "--until"),
        (["--clear", "cron"], "--clear"),
        (["--timezone", "Berlin"], "did you mean Europe/Berlin?"),
    ],
)
def test_an_invalid_update_is_rejected_before_anything_is_sent(
    folder: Path, args: list[str], words: str
) -> None:
    result = invoke("schedules", "update", "nightly", *args)
    assert (result.exit_code, words in result.stderr) == (2, True), result.output
    assert not (folder / "shop.db").exists()


def test_the_task_may_change_while_the_stored_payload_stays(folder: Path) -> None:
    create("n", "--payload", '{"text": "x"}', task="other")
    done = rota_command("--app", "shop", "schedules", "update", "n", "--task", "boom", cwd=folder)
    assert done.returncode == 0, done.stderr
    stored = as_json("schedules", "show", "n")
    assert (stored["task"], stored["payload"]) == ("boom", {"text": "x"})


def test_enable_shows_the_next_run_and_an_unknown_name_does_not_stop_the_others(folder: Path) -> None:
    create("a"), create("b")
    assert "a  disabled" in do("schedules", "disable", "a", "b", "--reason", "stock-taking")
    assert "off: stock-taking" in do("schedules", "list")
    result = invoke("schedules", "enable", "nope", "a")
    assert (result.exit_code, "no schedule 'nope'" in result.stderr) == (1, True)
    assert "a  enabled  next run in " in result.stdout
    assert [s["enabled"] for s in as_json("schedules", "list")["items"]] == [True, False]
    assert [s["name"] for s in as_json("schedules", "list", "--disabled")["items"]] == ["b"]


def test_an_unknown_schedule_is_a_failure_that_names_it(folder: Path) -> None:
    for command in ("show", "preview", "trigger", "delete"):
        result = invoke("schedules", command, "nope")
        assert (result.exit_code, "'nope'" in result.stderr) == (1, True), command
    assert invoke("schedules", "update", "nope", "--every", "5m").exit_code == 1


def test_delete_shows_the_effect_and_asks(folder: Path) -> None:
    create("nightly")
    for answer in ("n\n", ""):
        kept = invoke("schedules", "delete", "nightly", stdin=answer)
        assert (kept.exit_code, "It will create no more jobs" in kept.stderr) == (1, True)
    assert names() == ["nightly"]
    assert invoke("schedules", "delete", "nightly", stdin="y\n").exit_code == 0
    create("nightly")
    assert "deleted" in do("schedules", "delete", "nightly", "--yes")
    assert names() == []


# --- looking -------------------------------------------------------------------------------------


def test_empty_lists_show_the_first_step(folder: Path) -> None:
    assert "rota schedules create" in do("schedules", "list")
    assert "No schedule matches" in do("schedules", "list", "--task", "x")
    assert "rota schedules list" in do("runs", "list")
    assert "rota calendars import" in do("calendars", "list")
    for what in ("schedules", "runs", "calendars"):
        assert as_json(what, "list") == {"items": [], "next": None}
    create("nightly")
    assert "rota schedules trigger nightly" in do("runs", "list", "--schedule", "nightly")


def test_the_list_is_sorted_and_shows_rule_next_and_last_run(folder: Path) -> None:
    create("zebra", "--every", "15m")
    create("ape", "--cron", "0 8 * * 1-5", "--timezone", "America/New_York")
    do("schedules", "trigger", "zebra")
    header, ape, zebra = do("schedules", "list").splitlines()
    assert header.split() == ["NAME", "STATE", "WHEN", "NEXT", "LAST", "RUN", "SUCCESS", "30D", "TASK"]
    assert "At 08:00, Monday through Friday, New York time" in ape
    assert "08:00 E" in ape and "  in " in ape
    assert "Every 15 minutes" in zebra and "queued" in zebra
    items = as_json("schedules", "list")["items"]
    assert [item["last_run"] and item["last_run"]["triggered_by"] for item in items] == [None, "manual"]


def test_pages_of_schedules_find_every_one_once(folder: Path) -> None:
    for name in "cab":
        create(name)
    result = invoke("schedules", "list", "--task", "add", "--limit", "2")
    more = result.stderr.strip()
    assert more.startswith("More: rota schedules list --task add --limit 2 --cursor ")
    rest = invoke(*more.removeprefix("More: rota ").replace("'", "").split())
    assert [line.split()[0] for line in rest.stdout.splitlines()] == ["NAME", "c"]


def test_a_preview_notes_clock_changes(folder: Path) -> None:
    create("night", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--start-at", "2030-03-30T00:00Z")
    text = do("schedules", "preview", "night", "-n", "3")
    assert "2030-03-31 03:00 CEST" in text
    assert "02:30 does not exist, runs at 03:00" in text
    fires = as_json("schedules", "preview", "night", "-n", "2")["items"]
    assert fires[1]["at"] == "2030-03-31T01:00:00Z"
    assert fires[1]["local"] == "2030-03-31T03:00:00+02:00"


def test_a_rule_is_validated_without_a_store(folder: Path) -> None:
    text = do("schedules", "validate", "--cron", "@daily", "--timezone", "Asia/Tokyo", "-n", "2")
    assert text.startswith("At 00:00, every day, Tokyo time\n")
    good = as_json("schedules", "validate", "--every", "15m", "-n", "3")
    assert (good["valid"], len(good["fires"])) == (True, 3)
    result = invoke("schedules", "validate", "--cron", "0 25 * * *", "--json")
    assert result.exit_code == 2
    assert msgspec.json.decode(result.stdout)["column"] == 3
    assert not (folder / "shop.db").exists()


def test_a_damaged_row_is_shown_with_its_error(folder: Path) -> None:
    create("good"), create("bad")
    with sqlite3.connect(folder / "shop.db") as connection:
        connection.execute("UPDATE rota_schedules SET cron = 'nonsense' WHERE name = 'bad'")
    connection.close()
    text = do("schedules", "list")
    assert "At 03:00" in text
    assert "cannot be read: cron='nonsense'" in text
    assert "has 1 field" in do("schedules", "show", "bad")


def test_hostile_text_is_shown_escaped(folder: Path) -> None:
    create("n", "--payload", msgspec.json.encode({"text": HOSTILE}).decode(), "--description", HOSTILE)
    do("schedules", "disable", "n", "--reason", HOSTILE)
    for args in (["schedules", "list"], ["schedules", "show", "n"], ["schedules", "show", "n", "--json"]):
        text = do(*args)
        assert "owned" in text
        assert text.replace("\n", "").isprintable(), args


# --- trigger, runs, backfill ---------------------------------------------------------------------


def test_a_triggered_run_is_manual_and_keeps_the_next_run(folder: Path) -> None:
    before = create("sum", "--payload", '{"a": 1, "b": 2}')
    create("bad", "--payload", '{"text": "no luck"}', "--max-attempts", "1", task="boom")
    job = do("schedules", "trigger", "sum").strip()
    do("schedules", "trigger", "bad")
    assert rota_command("worker", "--app", "shop", "--burst", cwd=folder).returncode == 0
    assert as_json("jobs", "show", job)["origin"] == "manual"
    assert as_json("schedules", "show", "sum")["next_run_at"] == before["next_run_at"]
    (run,) = as_json("runs", "list", "--schedule", "sum")["items"]
    assert (run["job"], run["success"], run["triggered_by"]) == (job, True, "manual")
    assert run["duration_ms"] >= 0
    (failed,) = as_json("runs", "list", "--failed")["items"]
    assert (failed["schedule"], failed["message"]) == ("bad", "no luck")
    assert "no luck" in do("runs", "list", "--failed")
    summary = invoke("runs", "list", "--schedule", "sum").stderr
    assert "1 run in the last 30 days: 100 % of 1 succeeded" in summary
    text = do("schedules", "show", "bad")
    assert "failed" in text and "no luck" in text


def instants(hours: int) -> tuple[str, str]:
    until = datetime.now(UTC).replace(minute=30, second=0, microsecond=0) - timedelta(hours=1)
    return (until - timedelta(hours=hours)).isoformat(), until.isoformat()


def test_a_backfill_is_a_dry_run_first_and_creates_each_job_once(folder: Path) -> None:
    create("hourly", "--cron", "@hourly")
    since, until = instants(12)
    asked = ("schedules", "backfill", "hourly", "--since", since, "--until", until)
    assert "12 fire times without a job" in do(*asked)
    assert "Dry run: nothing was created" in do(*asked)
    assert as_json("runs", "list")["items"] == []
    refused = invoke(*asked, "--apply", stdin="n\n")
    assert (refused.exit_code, "origin catchup" in refused.stderr) == (1, True)
    assert "12 jobs created" in do(*asked, "--apply", "--yes")
    assert {run["triggered_by"] for run in as_json("runs", "list")["items"]} == {"catchup"}
    assert "no fire time without a job in that range" in do(*asked, "--apply", "--yes")
    assert len(as_json("runs", "list")["items"]) == 12


@pytest.mark.parametrize(
    ("since", "until", "flag"),
    [
        ("yesterday", "2020-01-01T00:00Z", "--since"),
        ("2020-01-01T00:00", "2020-01-02T00:00Z", "--since"),
        ("2020-01-02T00:00Z", "2020-01-01T00:00Z", "--until"),
        ("2020-01-01T00:00Z", "2999-01-01T00:00Z", "--until"),
    ],
)
def test_an_invalid_range_names_its_option(folder: Path, since: str, until: str, flag: str) -> None:
    create("hourly", "--cron", "@hourly")
    result = invoke("schedules", "backfill", "hourly", "--since", since, "--until", until)
    assert (result.exit_code, flag in result.stderr) == (2, True), result.output


# --- import crontab ------------------------------------------------------------------------------


def test_a_crontab_import_is_a_dry_run_without_apply(folder: Path) -> None:
    result = invoke("schedules", "import", "crontab", "crontab")
    assert result.exit_code == 1  # some lines cannot be used
    for words in (
        "backup-full",
        "backup-full-2",
        "sweep",
        "At 03:00, every day, Berlin time",
        "Dry run: 4 sch",
    ):
        assert words in result.stdout
    for words in ("line 5: cron='61 3 * * *'", "line 7: cron='@reboot'", "line 9: is too short"):
        assert words in result.stderr
    assert "line 10: cron turns % into a line break" in result.stdout
    assert not (folder / "shop.db").exists()


def test_an_applied_crontab_passes_each_command_to_the_task(folder: Path) -> None:
    refused = invoke("schedules", "import", "crontab", "crontab", "--apply")
    assert (refused.exit_code, "--task" in refused.stderr) == (2, True)
    args = ("schedules", "import", "crontab", "crontab", "--task", "shell", "--queue", "cron", "--apply")
    result = invoke(*args)
    assert (result.exit_code, "4 schedules created" in result.stdout) == (1, True)
    sweep = as_json("schedules", "show", "sweep")
    assert sweep["payload"] == {"command": "cd /srv/shop && ./sweep.py"}
    assert (sweep["cron"], sweep["timezone"], sweep["queue"]) == ("@daily", "Europe/Berlin", "cron")
    again = invoke(*args)
    assert (again.exit_code, "already has a schedule" in again.stderr) == (1, True)
    assert len(names()) == 4


def test_a_system_crontab_has_users_and_comes_from_stdin(folder: Path) -> None:
    args = ("schedules", "import", "crontab", "-", "--system", "--timezone", "Asia/Tokyo", "--json")
    result = invoke(*args, stdin="17 * * * * www-data run-parts /etc/cron.hourly\n")
    assert result.exit_code == 0, result.output
    (item,) = msgspec.json.decode(result.stdout)["items"]
    assert (item["command"], item["timezone"]) == ("run-parts /etc/cron.hourly", "Asia/Tokyo")
    assert "www-data" in item["note"]


def test_a_crontab_that_cannot_be_read_is_a_failure(folder: Path) -> None:
    missing = invoke("schedules", "import", "crontab", "nowhere")
    assert (missing.exit_code, "'nowhere'" in missing.stderr) == (1, True)
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in invoke("schedules", "import", "crontab", "binary").stderr
    assert invoke("schedules", "import", "crontab", "crontab", "--timezone", "Nowhere").exit_code in (1, 2)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/local/bin/backup.sh --full >/dev/null 2>&1", "backup-full"),
        ("cd /srv/app && python manage.py clearsessions", "python-manage-clearsessions"),
        ("PATH=/bin LANG=C ./tidy | mail ops", "tidy"),
        ("[ -x /bin/true ] && /bin/true", "x-true"),
        ("…", "command"),
        ("x" * 500, "x" * 60),
    ],
)
def test_a_name_is_made_from_a_command(command: str, name: str) -> None:
    assert name_of(command) == name


# --- calendars -----------------------------------------------------------------------------------


def test_a_calendar_is_imported_shown_used_and_deleted_with_a_warning(folder: Path) -> None:
    assert "2 dates" in do("calendars", "import", "holidays.ics", "--name", "holidays")
    assert "replacing 2 dates" in do("calendars", "import", "holidays.ics", "--name", "holidays")
    create("nightly", "--calendar", "holidays")
    assert as_json("calendars", "list")["items"][0]["dates"] == ["2099-12-25", "2099-12-26"]
    assert "2099-12-25" in do("calendars", "list")
    text = do("calendars", "show", "holidays")
    assert "2099-12-25  Friday" in text and "Used by nightly" in text
    kept = invoke("calendars", "delete", "holidays", stdin="n\n")
    assert kept.exit_code == 1
    assert "Used by nightly: each will be disabled at its next fire time" in kept.stderr
    do("calendars", "delete", "holidays", "--yes")
    assert as_json("calendars", "list")["items"] == []
    assert invoke("calendars", "show", "holidays").exit_code == 1
    assert invoke("calendars", "delete", "holidays", "--yes").exit_code == 1


def test_an_invalid_calendar_file_is_rejected_with_its_line(folder: Path) -> None:
    (folder / "bad.ics").write_text("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:someday\n")
    result = invoke("calendars", "import", "bad.ics", "--name", "n")
    assert (result.exit_code, "line" in result.stderr) == (2, True)
    assert as_json("calendars", "list")["items"] == []


def test_everything_works_on_postgres_too(folder: Path, migrated_postgres_url: str) -> None:
    url = ("--url", migrated_postgres_url)
    do("schedules", "create", "--name", "nightly", "--task", "add", "--cron", "0 3 * * *", *url)
    do("schedules", "update", "nightly", "--jitter", "5m", *url)
    do("schedules", "trigger", "nightly", *url)
    assert "nightly" in do("schedules", "list", *url)
    assert "manual" in do("runs", "list", "--schedule", "nightly", *url)
    do("schedules", "disable", "nightly", *url), do("schedules", "enable", "nightly", *url)
    do("schedules", "delete", "nightly", "--yes", *url)


def test_what_list_prints_is_what_the_other_commands_take(folder: Path) -> None:
    for tenant, name in (("acme", "invoice"), ("a/b", "invoice"), ("default", "acme/invoice")):
        assert invoke("schedules", "create", "--name", name, "--task", "t", "--every", "1h",
                      "--tenant", tenant).exit_code == 0  # fmt: skip
    listed = invoke("schedules", "list").output
    for label, tenant in (
        ("acme/invoice", "acme"),
        ("a%2Fb/invoice", "a/b"),
        ("default/acme/invoice", "default"),
    ):
        assert label in listed
        assert as_json("schedules", "show", label)["tenant"] == tenant
        for verb in ("disable", "enable", "preview"):
            assert invoke("schedules", verb, label).exit_code == 0
        assert f"Paused schedule {label}" in invoke("pause", "--schedule", label).output
        assert invoke("resume", "--schedule", label).exit_code == 0
        assert as_json("schedules", "update", label, "--description", "x")["tenant"] == tenant
        assert f"{label}  deleted" in invoke("schedules", "delete", label, "--yes").output


def test_a_name_of_another_tenant_is_pointed_out(folder: Path) -> None:
    assert invoke("schedules", "create", "--name", "invoice", "--task", "t", "--every", "1h",
                  "--tenant", "acme").exit_code == 0  # fmt: skip
    assert as_json("schedules", "show", "invoice")["tenant"] == "acme"
    found = invoke("schedules", "show", "invoice", "--tenant", "globex")
    assert found.exit_code == 1
    assert "tenant 'globex' has no schedule 'invoice'; did you mean acme/invoice?" in found.output


def test_creating_again_with_on_conflict_updates(folder: Path) -> None:
    create = ("schedules", "create", "--name", "n", "--task", "t", "--every")
    assert "n  created" in invoke(*create, "1h", "--on-conflict", "update").output
    assert "on_conflict='update'" in invoke(*create, "2h").output
    assert "n  updated" in invoke(*create, "2h", "--on-conflict", "update").output
    assert as_json("schedules", "show", "n")["every"] == 7200.0
