"""Users with a password: set, list and remove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.in_process import URL, invoke, on_store, output, output_json
from cli.terminal_session import TerminalSession
from rota import Rota
from rota.operate.credentials import by_password
from rota.operate.sessions import Sessions

PASSWORD = "correct horse battery"


def lets_in(name: str, password: str) -> Any:
    async def check(app: Rota) -> Any:
        return await by_password(await app.stores.get(), app.clock, name, password)

    return on_store(check)


def test_a_password_from_stdin_or_a_file_signs_in(folder: Path) -> None:
    said = output("users", "set", "anna", "--role", "operator", "--password-file", "-", stdin=f"{PASSWORD}\n")
    assert said == "anna can sign in: operator of all tenants, with payloads.\n"
    assert lets_in("anna", PASSWORD).role == "operator" and lets_in("anna", "another password") is None
    (folder / "secret").write_text(f"{PASSWORD} two\n")
    output("users", "set", "anna", "--role", "viewer", "--tenant", "acme", "--password-file", "secret")
    assert lets_in("anna", PASSWORD) is None
    (listed,) = output_json("users", "list")["items"]
    assert (listed["name"], listed["role"], listed["tenant"], listed["payloads"]) == (
        "anna", "viewer", "acme", False,
    )  # fmt: skip
    assert output("users", "remove", "anna", "--yes") == "anna  deleted\n"
    assert lets_in("anna", f"{PASSWORD} two") is None
    assert invoke("users", "remove", "anna", "--yes").exit_code == 1


def test_a_typed_password_is_asked_twice_and_never_shown(folder: Path) -> None:
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
    assert output_json("users", "list")["items"] == []


def test_password_changes_nothing_else_and_sign_out_ends_the_sessions(folder: Path) -> None:
    output("users", "set", "anna", "--role", "operator", "--password-file", "-", stdin=f"{PASSWORD}\n")

    async def begin(app: Rota) -> str:
        store = await app.stores.get()
        id, _ = await Sessions(store, app.clock).begin(await by_password(store, app.clock, "anna", PASSWORD))
        return id

    async def is_open(app: Rota, id: str) -> bool:
        return await Sessions(await app.stores.get(), app.clock).find(id) is not None

    first = on_store(begin)
    assert on_store(lambda app: is_open(app, first))
    assert "1 session ended" in output("users", "sign-out", "anna", "--yes")
    assert not on_store(lambda app: is_open(app, first))
    other = f"{PASSWORD} two"
    said = output("users", "password", "anna", "--password-file", "-", "--must-change", stdin=f"{other}\n")
    assert "chooses another one at the next sign-in" in said
    found = lets_in("anna", other)
    assert (found.role, found.must_change) == ("operator", True) and lets_in("anna", PASSWORD) is None
    weak = invoke("users", "password", "anna", "--password-file", "-", stdin="passwordpassword\n")
    assert weak.exit_code == 2 and "the password repeats one part" in weak.stderr
