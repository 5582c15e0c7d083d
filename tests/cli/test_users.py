"""Users with a password: set, list and remove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.in_process import URL, invoke, on_store, output, output_json
from cli.terminal_session import TerminalSession
from rota import Rota
from rota.operate.credentials import by_password

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
