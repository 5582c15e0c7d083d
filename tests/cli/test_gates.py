"""Pauses of everything, queues, tasks, tenants and schedules, and the lists that show them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cli.command import rota_command
from cli.in_process import HOSTILE, URL, enqueue, invoke, on_store, output, output_json
from cli.terminal_session import TerminalSession


def test_queues_list_shows_depth_age_and_pause(folder: Path) -> None:
    enqueue(queue="mail")
    enqueue(queue="mail", delay=3600)
    output("queues", "pause", "mail", "--reason", "provider down", "--for", "2h")
    (queue,) = output_json("queues", "list")["items"]
    assert (queue["name"], queue["due"], queue["due_later"], queue["running"]) == ("mail", 1, 1, 0)
    assert queue["gate"]["reason"] == "provider down"
    text = output("queues", "list")
    assert "mail" in text and "provider down" in text and "(in 2 h)" in text


def test_empty_lists_have_an_empty_state(folder: Path) -> None:
    assert "as soon as a job names it" in output("queues", "list")
    assert "rota worker --app" in output("tasks", "list")
    assert "No tenant" in output("tenants", "list")
    assert output("gates", "list") == "Nothing is paused.\n"
    assert "rota token create" in output("token", "list")
    assert "No password users yet" in output("users", "list")
    for group in ("queues", "tasks", "tenants", "gates", "token", "users", "audit"):
        assert output_json(group, "list") == {"items": [], "next": None}, group


@pytest.mark.parametrize(("group", "scope"), [("queues", "queue"), ("tasks", "task"), ("tenants", "tenant")])
def test_a_pause_is_listed_until_resumed(folder: Path, group: str, scope: str) -> None:
    said = output(group, "pause", "mail", "--reason", "night work")
    assert said.startswith(f"Paused {scope} mail until resumed, by ")
    assert said.endswith("night work. Running jobs continue.\n")
    assert [gate["id"] for gate in output_json("gates", "list")["items"]] == [f"{scope}:mail"]
    assert [one["gate"]["reason"] for one in output_json(group, "list")["items"]] == ["night work"]
    assert output(group, "resume", "mail") == f"Resumed {scope} mail.\n"
    assert output_json("gates", "list")["items"] == []
    again = invoke(group, "resume", "mail")
    assert (again.exit_code, again.stderr) == (1, f"rota: nothing is paused under '{scope}:mail'\n")


@pytest.mark.parametrize("scope", ["queue", "task", "tenant"])
def test_pause_and_resume_take_one_scope_option(folder: Path, scope: str) -> None:
    output("pause", f"--{scope}", "mail")
    assert f"rota resume --{scope} mail" in output("gates", "list")
    output("resume", f"--{scope}", "mail")
    assert output_json("gates", "list")["items"] == []


def test_a_schedule_is_paused_by_name_and_tenant(folder: Path) -> None:
    on_store(lambda app: app.schedules.create(name="nightly", task="add", cron="0 3 * * *", tenant="acme"))
    said = output("pause", "--schedule", "nightly", "--tenant", "acme")
    assert said.startswith("Paused schedule acme/nightly")
    assert "rota resume --schedule nightly --tenant acme" in output("gates", "list")
    output("resume", "--schedule", "nightly", "--tenant", "acme")
    assert output_json("gates", "list")["items"] == []
    missing = invoke("pause", "--schedule", "nightly")
    assert missing.exit_code == 1 and "nightly" in missing.stderr


def test_pause_without_scope_pauses_everything_and_resume_lists_other_pauses(folder: Path) -> None:
    """Heritage A4: offline, workers claim nothing."""
    output("queues", "pause", "mail")
    gate = output_json("pause", "--reason", "upgrade")
    assert (gate["id"], gate["reason"]) == ("all", "upgrade")
    enqueue()
    ran = rota_command("worker", "--app", "shop:app", "--burst", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert [q["due"] for q in output_json("queues", "list")["items"]] == [1, 0]
    assert output("resume") == "Resumed everything.\nStill paused: queue mail.\n"


def test_pausing_everything_on_a_terminal_shows_the_effect_and_asks(folder: Path) -> None:
    enqueue()
    with TerminalSession("pause", "--url", URL, cwd=folder) as typist:
        asked = typist.read_until("Pause everything?")
        assert "0 running workers will start no jobs" in asked and "1 due job will stay queued" in asked
        typist.type("n\n")
        assert typist.end() == 1
    assert output_json("gates", "list")["items"] == []
    with TerminalSession("pause", "--url", URL, "--yes", cwd=folder) as typist:
        assert typist.end() == 0
    assert [gate["id"] for gate in output_json("gates", "list")["items"]] == ["all"]


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
def test_an_invalid_pause_is_rejected(folder: Path, args: list[str], words: str) -> None:
    result = invoke("pause", *args)
    assert result.exit_code == 2 and words in result.stderr
    assert output_json("gates", "list")["items"] == []


def test_control_characters_in_stored_text_are_escaped(folder: Path) -> None:
    output("pause", "--queue", "mail", "--reason", HOSTILE)
    output("token", "create", "--role", "viewer", "--name", HOSTILE)
    for listing in (["gates", "list"], ["audit", "list"], ["token", "list"]):
        text = output(*listing)
        assert "owned" in text, listing
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r"} & set(text), listing


def test_watch_is_for_a_terminal(folder: Path) -> None:
    result = invoke("queues", "list", "--watch")
    assert result.exit_code == 2 and "terminal" in result.stderr


def test_pausing_a_name_that_nothing_has_is_a_warning(folder: Path) -> None:
    enqueue(queue="mail")
    result = invoke("queues", "pause", "mial")
    assert result.exit_code == 0 and result.stdout.startswith("Paused queue mial")
    assert "names queue 'mial'; did you mean 'mail'?" in result.stderr
    assert output_json("tasks", "pause", "nope", "--json")["warning"].startswith("no worker, schedule")
    assert invoke("queues", "pause", "mail").stderr == ""


def test_health_names_the_pause_that_makes_jobs_late(folder: Path) -> None:
    enqueue(queue="mail")
    enqueue(queue="sms")
    output("queues", "pause", "mail", "--reason", "provider down")
    problems = output_health("--late-after", "0")
    assert any("job in queue mail has been due" in one and "provider down" in one for one in problems)
    assert any("(the limit is" in one for one in problems)  # sms, which is not paused
    output("queues", "pause", "sms")
    problems = output_health("--late-after", "0")
    assert not any("the limit is" in one for one in problems)
    output("queues", "resume", "sms")
    output("tenants", "pause", "default")
    assert any(one.endswith("; tenant default is paused") for one in output_health("--late-after", "0"))


def output_health(*args: str) -> list[str]:
    result = invoke("health", "--json", *args)
    problems: list[str] = msgspec.json.decode(result.stdout)["problems"]
    return problems
