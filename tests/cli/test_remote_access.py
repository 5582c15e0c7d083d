"""The same commands through a server, which says what a token may do; the log tells whose it was."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.closed_port import closed_port
from cli.command import eventually, rota_command, said, started
from cli.terminal_session import TerminalSession
from rota import Rota
from rota.cli.root import root

URL = "sqlite:///shop.db"
TOKENS = {"admin": (), "operator": (), "viewer": (), "acme": ("--role", "operator", "--tenant", "acme")}
Server = dict[str, str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A ``rota serve``: its address, its folder, and a token of each kind."""
    folder = tmp_path_factory.mktemp("served")
    asyncio.run(_fill(folder))
    found = {"folder": str(folder)}
    for name, more in TOKENS.items():
        args = more or ("--role", name)
        made = rota_command("token", "create", "--name", name, *args, "--url", URL, cwd=folder)
        found[name] = made.stdout.strip()
    with started("serve", "--port", "0", "--url", URL, cwd=folder):
        address = eventually(lambda: re.search(r"http://127\.0\.0\.1:\d+", said(folder)), "it listens")
        yield {**found, "api": address[0]}


async def _fill(folder: Path) -> None:
    app = Rota(f"sqlite:///{folder / 'shop.db'}")
    await app.enqueue("add", {"a": 1, "b": 2}, queue="mail", tenant="acme")
    await app.enqueue("add", {"a": 1, "b": 2}, tenant="other")
    await app.schedules.create(name="nightly", task="add", cron="0 3 * * *", tenant="acme")
    await app.close()


@pytest.fixture(autouse=True)
def nothing_stays_paused(server: Server) -> Iterator[None]:
    yield
    for gate in as_json(server, "admin", "gates", "list")["items"]:
        scope, name = gate["scope"], gate["name"]
        whose = ["--tenant", gate["tenant"]] if gate["tenant"] else []
        ask(server, "admin", "resume", *([] if scope == "all" else [f"--{scope}", name]), *whose)


def ask(server: Server, who: str, *args: str, stdin: str | None = None) -> Result:
    env = {"ROTA_API": server["api"], "ROTA_TOKEN": server.get(who, who)}
    return CliRunner(env=env).invoke(root, args, input=stdin)


def done(server: Server, who: str, *args: str, stdin: str | None = None) -> str:
    result = ask(server, who, *args, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def as_json(server: Server, who: str, *args: str) -> Any:
    return msgspec.json.decode(done(server, who, *args, "--json"))


@pytest.mark.parametrize(
    ("pausing", "resuming", "gate"),
    [
        (["queues", "pause", "a b/ü"], ["queues", "resume", "a b/ü"], "queue:a b/ü"),
        (["tasks", "pause", "add"], ["tasks", "resume", "add"], "task:add"),
        (["tenants", "pause", "acme"], ["tenants", "resume", "acme"], "tenant:acme"),
        (["pause", "--for", "1h"], ["resume"], "all"),
        (
            ["pause", "--schedule", "nightly", "--tenant", "acme"],
            ["resume", "--schedule", "nightly", "--tenant", "acme"],
            "schedule:acme/nightly",
        ),
    ],
)
def test_everything_can_be_paused_and_resumed(
    server: Server, pausing: list[str], resuming: list[str], gate: str
) -> None:
    assert "Paused " in done(server, "operator", *pausing, "--reason", "night work")
    (listed,) = as_json(server, "operator", "gates", "list")["items"]
    assert (listed["id"], listed["reason"]) == (gate, "night work")
    assert listed["actor"].startswith("token:operator#")
    assert "night work" in done(server, "operator", "gates", "list")
    assert "Resumed " in done(server, "operator", *resuming)
    assert as_json(server, "operator", "gates", "list")["items"] == []


def test_remote_lists_match_those_of_the_store(server: Server) -> None:
    queues = as_json(server, "viewer", "queues", "list")["items"]
    assert [one["name"] for one in queues] == ["default", "mail"]
    assert [one["name"] for one in as_json(server, "viewer", "tenants", "list")["items"]] == ["acme", "other"]
    assert "mail" in done(server, "viewer", "queues", "list")
    assert as_json(server, "viewer", "tasks", "list")["items"] == []


def test_the_audit_log_names_the_token_and_denied_actions(server: Server) -> None:
    done(server, "operator", "queues", "pause", "mail")
    refused = ask(server, "viewer", "queues", "pause", "mail")
    assert refused.exit_code == 1 and "viewer" in refused.stderr
    done_line, *_ = as_json(server, "admin", "audit", "list", "--action", "queue.pause")["items"]
    assert done_line["actor"].startswith("token:operator#")
    assert (done_line["via"], done_line["result"]) == ("http", "done")
    refused_line, *_ = as_json(server, "admin", "audit", "list", "--result", "denied")["items"]
    assert refused_line["actor"].startswith("token:viewer#")
    exported = done(server, "admin", "audit", "export", "--since", "1h").splitlines()
    actors = {msgspec.json.decode(line)["actor"].partition("#")[0] for line in exported}
    assert actors >= {"token:operator", "token:viewer"}


def test_a_tenants_operator_can_change_only_that_tenant(server: Server) -> None:
    assert [one["name"] for one in as_json(server, "acme", "tenants", "list")["items"]] == ["acme"]
    assert ask(server, "acme", "pause").exit_code == 1
    assert ask(server, "acme", "queues", "pause", "mail").exit_code == 1
    assert ask(server, "acme", "tenants", "pause", "other").exit_code == 1
    assert as_json(server, "admin", "gates", "list")["items"] == []
    done(server, "acme", "tenants", "pause", "acme")
    done(server, "acme", "tenants", "resume", "acme")
    done(server, "acme", "pause", "--schedule", "nightly")
    assert done(server, "acme", "resume", "--schedule", "nightly") == "Resumed schedule nightly.\n"


def test_a_revoked_token_is_denied_at_once(server: Server) -> None:
    made = as_json(server, "admin", "token", "create", "--role", "viewer")
    assert ask(server, made["token"], "queues", "list").exit_code == 0
    assert done(server, "admin", "token", "revoke", made["id"], "--yes") == f"{made['id']}  revoked\n"
    refused = ask(server, made["token"], "queues", "list")
    assert refused.exit_code == 2 and made["token"] not in refused.output


def test_users_are_managed_through_the_server(server: Server) -> None:
    args = ("users", "set", "anna", "--role", "viewer", "--password-file", "-")
    assert "anna can sign in" in done(server, "admin", *args, stdin="correct horse battery\n")
    assert [one["name"] for one in as_json(server, "admin", "users", "list")["items"]] == ["anna"]
    done(server, "admin", "users", "remove", "anna", "--yes")
    assert ask(server, "operator", "users", "list").exit_code == 1


def test_doctor_works_through_the_server(server: Server) -> None:
    result = ask(server, "operator", "doctor", "--json")
    assert result.exit_code == 1
    assert {"store", "schema", "workers"} <= {
        f["check"] for f in msgspec.json.decode(result.stdout)["findings"]
    }
    with closed_port() as address:
        away = ask({**server, "api": f"http://{address}"}, "operator", "doctor")
    assert away.exit_code == 3 and "is unreachable" in away.stdout


def test_top_works_through_the_server_and_hides_what_is_not_allowed(server: Server) -> None:
    folder = Path(server["folder"])
    before = len(as_json(server, "admin", "audit", "list", "--result", "denied")["items"])
    for who, seen, unseen in (
        ("operator", "no worker is running", "tenant acme"),
        ("acme", "tenant acme", "worker"),
    ):
        env = {"ROTA_API": server["api"], "ROTA_TOKEN": server[who]}
        with TerminalSession("top", "--interval", "0.2", cwd=folder, **env) as typist:
            typist.read_until(seen)
            shown = typist.read_until("? help") + typist.read_until("? help")
            assert "mail" in shown and f" {unseen} " not in shown
            typist.type("q")
            assert typist.end() == 0
    assert len(as_json(server, "admin", "audit", "list", "--result", "denied")["items"]) == before
