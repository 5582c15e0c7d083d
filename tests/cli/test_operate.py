"""Steering from a terminal: queues, tasks, tenants, pauses, the audit log, tokens and users."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.closed_port import closed_port
from cli.command import make_shop, rota_command
from cli.terminal_session import TerminalSession
from rota import Rota
from rota.cli.parts.atomic_file import atomic_file
from rota.cli.root import root
from rota.model import AuditEntry
from rota.operate.access import by_password, by_token

T = TypeVar("T")

URL = "sqlite:///shop.db"
HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202eevil\r\nforged line"
PASSWORD = "correct horse battery"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the app, the current one, in which the command line runs within this process."""
    make_shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_URL", URL)
    return tmp_path


def invoke(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(root, args, input=stdin)


def done(*args: str, stdin: str | None = None) -> str:
    result = invoke(*args, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def told(*args: str) -> Any:
    return msgspec.json.decode(done(*args, "--json"))


def on_store(act: Callable[[Rota], Awaitable[T]]) -> T:
    async def go() -> T:
        app = Rota(URL)
        try:
            return await act(app)
        finally:
            await app.close()

    return asyncio.run(go())


def enqueue(task: str = "add", **options: Any) -> str:
    return on_store(lambda app: app.enqueue(task, {"a": 1, "b": 2}, **options)).id


# --- queues, tasks, tenants, gates ---------------------------------------------------------------


def test_queues_list_tells_depth_age_and_pause(folder: Path) -> None:
    enqueue(queue="mail")
    enqueue(queue="mail", delay=3600)
    done("queues", "pause", "mail", "--reason", "provider down", "--for", "2h")
    (queue,) = told("queues", "list")["items"]
    assert (queue["name"], queue["queued"], queue["scheduled"], queue["running"]) == ("mail", 1, 1, 0)
    assert queue["gate"]["reason"] == "provider down"
    text = done("queues", "list")
    assert "mail" in text and "provider down" in text and "(in 2 h)" in text


def test_an_empty_listing_says_what_would_be_there(folder: Path) -> None:
    assert "as soon as a job names it" in done("queues", "list")
    assert "rota worker --app" in done("tasks", "list")
    assert "No tenant" in done("tenants", "list")
    assert done("gates", "list") == "Nothing is paused.\n"
    assert "rota token create" in done("token", "list")
    assert "No password users yet" in done("users", "list")
    for group in ("queues", "tasks", "tenants", "gates", "token", "users", "audit"):
        assert told(group, "list") == {"items": [], "next": None}, group


@pytest.mark.parametrize(("group", "scope"), [("queues", "queue"), ("tasks", "task"), ("tenants", "tenant")])
def test_what_is_paused_is_listed_and_goes_on_when_resumed(folder: Path, group: str, scope: str) -> None:
    said = done(group, "pause", "mail", "--reason", "night work")
    assert said.startswith(f"Paused {scope} mail until resumed, by ")
    assert said.endswith("night work. Running jobs continue.\n")
    assert [gate["id"] for gate in told("gates", "list")["items"]] == [f"{scope}:mail"]
    assert [one["gate"]["reason"] for one in told(group, "list")["items"]] == ["night work"]
    assert done(group, "resume", "mail") == f"Resumed {scope} mail.\n"
    assert told("gates", "list")["items"] == []
    again = invoke(group, "resume", "mail")
    assert (again.exit_code, again.stderr) == (1, f"rota: nothing is paused under '{scope}:mail'\n")


@pytest.mark.parametrize("scope", ["queue", "task", "tenant"])
def test_pause_and_resume_take_one_thing_by_flag(folder: Path, scope: str) -> None:
    done("pause", f"--{scope}", "mail")
    assert f"rota resume --{scope} mail" in done("gates", "list")
    done("resume", f"--{scope}", "mail")
    assert told("gates", "list")["items"] == []


def test_a_schedule_is_paused_by_name_and_tenant(folder: Path) -> None:
    on_store(lambda app: app.schedules.create(name="nightly", task="add", cron="0 3 * * *", tenant="acme"))
    said = done("pause", "--schedule", "nightly", "--tenant", "acme")
    assert said.startswith("Paused schedule acme/nightly")
    assert "rota resume --schedule nightly --tenant acme" in done("gates", "list")
    done("resume", "--schedule", "nightly", "--tenant", "acme")
    assert told("gates", "list")["items"] == []
    missing = invoke("pause", "--schedule", "nightly")
    assert missing.exit_code == 1 and "nightly" in missing.stderr


def test_nothing_named_pauses_everything_and_resume_tells_what_is_still_paused(folder: Path) -> None:
    """Heritage A4: offline, workers claim nothing."""
    done("queues", "pause", "mail")
    gate = told("pause", "--reason", "upgrade")
    assert (gate["id"], gate["reason"]) == ("all", "upgrade")
    enqueue()
    ran = rota_command("worker", "--app", "shop:app", "--burst", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert [q["queued"] for q in told("queues", "list")["items"]] == [1, 0]
    assert done("resume") == "Resumed everything.\nStill paused: queue mail.\n"


def test_pausing_everything_on_a_terminal_states_the_effect_and_asks(folder: Path) -> None:
    enqueue()
    with TerminalSession("pause", "--url", URL, cwd=folder) as typist:
        asked = typist.read_until("Pause everything?")
        assert "0 running workers will start no jobs" in asked and "1 due job will stay queued" in asked
        typist.type("n\n")
        assert typist.end() == 1
    assert told("gates", "list")["items"] == []
    with TerminalSession("pause", "--url", URL, "--yes", cwd=folder) as typist:
        assert typist.end() == 0
    assert [gate["id"] for gate in told("gates", "list")["items"]] == ["all"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--queue", "a", "--task", "b"], "--queue and --task cannot be combined"),
        (["--for", "1h", "--until", "2099-01-01T00:00Z"], "--until and --for cannot be combined"),
        (["--until", "2001-01-01T00:00Z"], "in the past"),
        (["--until", "tomorrow"], "not a date and time"),
        (["--for", "99999d"], "--for: "),
        (["--reason", "x" * 201], "reason"),
        (["--queue", ""], "name"),
    ],
)
def test_a_pause_that_makes_no_sense_is_refused(folder: Path, args: list[str], words: str) -> None:
    result = invoke("pause", *args)
    assert result.exit_code == 2 and words in result.stderr
    assert told("gates", "list")["items"] == []


def test_stored_text_cannot_steer_the_terminal(folder: Path) -> None:
    done("pause", "--queue", "mail", "--reason", HOSTILE)
    done("token", "create", "--role", "viewer", "--name", HOSTILE)
    for listing in (["gates", "list"], ["audit", "list"], ["token", "list"]):
        text = done(*listing)
        assert "owned" in text, listing
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r"} & set(text), listing


def test_watch_is_for_a_terminal(folder: Path) -> None:
    result = invoke("queues", "list", "--watch")
    assert result.exit_code == 2 and "terminal" in result.stderr


# --- audit ---------------------------------------------------------------------------------------


def test_every_change_is_told_with_its_actor_and_found_by_filter(folder: Path) -> None:
    done("queues", "pause", "mail", "--reason", "night work")
    done("queues", "resume", "mail")
    invoke("users", "remove", "nobody", "--yes")
    done("token", "create", "--role", "viewer")
    lines = told("audit", "list")["items"]
    assert [line["action"] for line in lines] == ["token.create", "queue.resume", "queue.pause"]
    assert {(line["via"], line["result"], line["role"]) for line in lines} == {("cli", "done", "admin")}
    actor = lines[0]["actor"]
    assert "@" in actor

    def actions(*args: str) -> list[str]:
        return [line["action"] for line in told("audit", "list", *args)["items"]]

    assert actions("--action", "queue.") == ["queue.resume", "queue.pause"]
    assert actions("--object", "queue:mail", "--action", "queue.pause") == ["queue.pause"]
    assert actions("--actor", actor, "--since", "1h") == [line["action"] for line in lines]
    assert actions("--actor", "nobody") == actions("--until", "1h") == actions("--result", "failed") == []
    assert "night work" in done("audit", "list")
    assert "No audit entry matches." in done("audit", "list", "--tenant", "acme")


def test_pages_of_the_audit_log_say_how_to_go_on(folder: Path) -> None:
    for name in ("a", "b", "c"):
        done("queues", "pause", name)
    result = invoke("audit", "list", "--since", "2h", "--limit", "2")
    more = result.stderr.strip()
    assert more.startswith("More: rota audit list --since 2h --limit 2 --cursor ")
    rest = invoke(*more.removeprefix("More: rota ").split()).stdout
    assert "queue:a" in rest and "queue:b" not in rest


@pytest.mark.parametrize("said", ["yesterday", "99999999999999999d", "2030-01-31T08:00"])
def test_a_time_that_cannot_be_read_is_a_usage_error(folder: Path, said: str) -> None:
    assert invoke("audit", "list", "--since", said).exit_code == 2


def lines_of_audit(count: int) -> None:
    first = datetime(2030, 1, 1, tzinfo=UTC)
    entries = [
        AuditEntry(action="note", at=first + timedelta(seconds=n), message=str(n)) for n in range(count)
    ]

    async def write(app: Rota) -> None:
        await (await app.stores.get()).append_audit(entries)

    on_store(write)


def test_an_export_has_every_line_once_in_a_file_for_its_owner(folder: Path) -> None:
    lines_of_audit(450)
    (folder / "log.jsonl").write_text("old")
    (folder / "log.jsonl").chmod(0o644)
    result = invoke("audit", "export", "--output", "log.jsonl")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "450 entries in log.jsonl\n")
    assert stat.S_IMODE((folder / "log.jsonl").stat().st_mode) == 0o600
    lines = [msgspec.json.decode(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [line["message"] for line in lines] == [str(n) for n in reversed(range(450))]
    to_stdout = done("audit", "export", "--since", "2030-01-01T00:07:00Z", "--until", "2030-01-01T00:07:05Z")
    assert [msgspec.json.decode(line)["message"] for line in to_stdout.splitlines()] == [
        "424", "423", "422", "421", "420",
    ]  # fmt: skip


def test_an_export_that_fails_leaves_the_old_file_and_nothing_else(folder: Path) -> None:
    (folder / "kept").mkdir()
    (folder / "kept" / "log.jsonl").write_text("old")
    with closed_port() as address:
        failed = invoke(
            "audit", "export", "--output", "kept/log.jsonl", "--url", f"postgresql://{address}/none"
        )
    assert failed.exit_code == 3
    assert [file.name for file in (folder / "kept").iterdir()] == ["log.jsonl"]
    assert (folder / "kept" / "log.jsonl").read_text() == "old"
    missing = invoke("audit", "export", "--output", "missing/log.jsonl")
    assert missing.exit_code == 1 and "missing/log.jsonl" in missing.stderr


def test_an_interrupted_export_leaves_no_half_file(folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt), atomic_file(Path("kept.jsonl")) as file:
        file.write("half")
        raise KeyboardInterrupt
    assert not list(folder.glob("*kept*")) and not list(folder.glob(".*kept*"))


def test_an_export_to_a_file_tells_on_a_terminal_how_far_it_is(folder: Path) -> None:
    lines_of_audit(250)
    with TerminalSession("audit", "export", "-o", "log.jsonl", "--url", URL, cwd=folder) as typist:
        assert typist.end() == 0
        assert "200 entries, back to 2030-01-01 00:00:50Z" in typist.seen
        assert "250 entries in log.jsonl" in typist.seen


# --- tokens --------------------------------------------------------------------------------------


def test_token_create_prints_the_token_alone_and_it_lets_in(folder: Path) -> None:
    result = invoke(
        "token", "create", "--role", "operator", "--tenant", "acme", "--expires", "30d", "--name", "ci"
    )
    text = result.stdout.removesuffix("\n")
    assert result.exit_code == 0 and text.startswith("rota_") and not set(text) & set(" \n")
    assert "operator of tenant acme, with payloads" in result.stderr and text not in result.stderr

    async def check(app: Rota) -> Any:
        return await by_token(await app.stores.get(), app.clock, text)

    found = on_store(check)
    assert (found.role, found.tenant, found.name, found.payloads) == ("operator", "acme", "ci", True)
    assert found.expires_at - found.created_at == timedelta(days=30)


def test_no_listing_shows_a_secret(folder: Path) -> None:
    text = done("token", "create", "--role", "viewer", "--no-payloads")
    secret = text.strip().split("_", 2)[2]
    for shown in (done("token", "list"), done("token", "list", "--json"), done("audit", "export")):
        assert secret not in shown and "hash" not in shown
    (listed,) = told("token", "list")["items"]
    assert (listed["role"], listed["tenant"], listed["payloads"], listed["expires_at"]) == (
        "viewer", None, False, None,
    )  # fmt: skip


def test_revoking_asks_tells_the_effect_and_is_all_or_nothing(folder: Path) -> None:
    one = told("token", "create", "--role", "admin", "--name", "deploy")
    two = told("token", "create", "--role", "viewer")
    unknown = invoke("token", "revoke", one["id"], "nothing", "--yes")
    assert unknown.exit_code == 1 and "nothing was changed" in unknown.stderr
    refused = invoke("token", "revoke", one["id"], stdin="n\n")
    assert refused.exit_code == 1
    assert (
        "(deploy), admin of all tenants, with payloads, never used: requests with it will be denied"
        in refused.stderr
    )
    assert len(told("token", "list")["items"]) == 2
    assert invoke("token", "revoke", one["id"], two["id"], stdin="y\n").exit_code == 0
    assert told("token", "list")["items"] == []


# --- users ---------------------------------------------------------------------------------------


def lets_in(name: str, password: str) -> Any:
    async def check(app: Rota) -> Any:
        return await by_password(await app.stores.get(), name, password)

    return on_store(check)


def test_a_password_comes_from_stdin_or_a_file_and_lets_in(folder: Path) -> None:
    said = done("users", "set", "anna", "--role", "operator", "--password-file", "-", stdin=f"{PASSWORD}\n")
    assert said == "anna can sign in: operator of all tenants, with payloads.\n"
    assert lets_in("anna", PASSWORD).role == "operator" and lets_in("anna", "another password") is None
    (folder / "secret").write_text(f"{PASSWORD} two\n")
    done("users", "set", "anna", "--role", "viewer", "--tenant", "acme", "--password-file", "secret")
    assert lets_in("anna", PASSWORD) is None
    (listed,) = told("users", "list")["items"]
    assert (listed["name"], listed["role"], listed["tenant"], listed["payloads"]) == (
        "anna", "viewer", "acme", False,
    )  # fmt: skip
    assert done("users", "remove", "anna", "--yes") == "anna  deleted\n"
    assert lets_in("anna", f"{PASSWORD} two") is None
    assert invoke("users", "remove", "anna", "--yes").exit_code == 1


def test_a_password_typed_is_asked_for_twice_and_never_shown(folder: Path) -> None:
    with TerminalSession("users", "set", "anna", "--role", "admin", "--url", URL, cwd=folder) as typist:
        typist.read_until("at least 12 characters): ")
        typist.type(f"{PASSWORD}\n")
        typist.read_until("Repeat the password: ")
        typist.type(f"{PASSWORD}\n")
        assert typist.end() == 0
        assert PASSWORD not in typist.seen
    assert lets_in("anna", PASSWORD).role == "admin"


@pytest.mark.parametrize(
    ("args", "stdin", "words"),
    [
        ([], None, "--password-file"),
        (["--password-file", "-"], "short\n", "12 characters"),
        (["--password-file", "-"], "", "12 characters"),
        (["--password", PASSWORD], None, "No such option"),
    ],
)
def test_a_password_is_long_and_never_an_argument(
    folder: Path, args: list[str], stdin: str | None, words: str
) -> None:
    result = invoke("users", "set", "anna", "--role", "admin", *args, stdin=stdin)
    assert result.exit_code == 2 and words in result.stderr
    assert told("users", "list")["items"] == []
