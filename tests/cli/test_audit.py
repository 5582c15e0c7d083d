"""The audit log: filters, pages and exports."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from cli.closed_port import closed_port
from cli.in_process import URL, invoke, on_store, output, output_json
from cli.terminal_session import TerminalSession
from rota import Rota
from rota.cli.parts.atomic_file import atomic_file
from rota.model import AuditEntry
from rota.worker.audit_seals import seal


def test_every_change_is_audited_and_found_by_filter(folder: Path) -> None:
    output("queues", "pause", "mail", "--reason", "night work")
    output("queues", "resume", "mail")
    invoke("users", "remove", "missing", "--yes")
    output("token", "create", "--role", "viewer")
    lines = output_json("audit", "list")["items"]
    assert [line["action"] for line in lines] == ["token.create", "queue.resume", "queue.pause"]
    assert {(line["via"], line["result"], line["role"]) for line in lines} == {("cli", "done", "admin")}
    actor = lines[0]["actor"]
    assert "@" in actor

    def actions(*args: str) -> list[str]:
        return [line["action"] for line in output_json("audit", "list", *args)["items"]]

    assert actions("--action", "queue.") == ["queue.resume", "queue.pause"]
    assert actions("--object", "queue:mail", "--action", "queue.pause") == ["queue.pause"]
    assert actions("--actor", actor, "--since", "1h") == [line["action"] for line in lines]
    assert actions("--actor", "missing") == actions("--until", "1h") == actions("--result", "failed") == []
    assert "night work" in output("audit", "list")
    assert "No audit entry matches." in output("audit", "list", "--tenant", "acme")


def test_pages_of_the_audit_log_show_the_command_for_the_next(folder: Path) -> None:
    for name in ("a", "b", "c"):
        output("queues", "pause", name)
    result = invoke("audit", "list", "--since", "2h", "--limit", "2")
    more = result.stderr.strip()
    assert more.startswith("More: rota audit list --since 2h --limit 2 --cursor ")
    rest = invoke(*more.removeprefix("More: rota ").split()).stdout
    assert "queue:a" in rest and "queue:b" not in rest


@pytest.mark.parametrize("said", ["yesterday", "99999999999999999d", "2030-01-31T08:00"])
def test_an_invalid_time_is_a_usage_error(folder: Path, said: str) -> None:
    assert invoke("audit", "list", "--since", said).exit_code == 2


def lines_of_audit(count: int) -> None:
    first = datetime(2030, 1, 1, tzinfo=UTC)
    entries = [
        AuditEntry(action="note", at=first + timedelta(seconds=n), message=str(n)) for n in range(count)
    ]

    async def write(app: Rota) -> None:
        await (await app.stores.get()).append_audit(entries)

    on_store(write)


def test_an_export_has_every_entry_once_in_a_private_file(folder: Path) -> None:
    lines_of_audit(450)
    (folder / "log.jsonl").write_text("old")
    (folder / "log.jsonl").chmod(0o644)
    result = invoke("audit", "export", "--output", "log.jsonl")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "450 entries in log.jsonl\n")
    assert stat.S_IMODE((folder / "log.jsonl").stat().st_mode) == 0o600
    lines = [msgspec.json.decode(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [line["message"] for line in lines] == [str(n) for n in reversed(range(450))]
    to_stdout = output(
        "audit", "export", "--since", "2030-01-01T00:07:00Z", "--until", "2030-01-01T00:07:05Z"
    )
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


def test_an_export_to_a_file_shows_progress_on_a_terminal(folder: Path) -> None:
    lines_of_audit(250)
    with TerminalSession("audit", "export", "-o", "log.jsonl", "--url", URL, cwd=folder) as typist:
        assert typist.end() == 0
        assert "200 entries, back to 2030-01-01 00:00:50Z" in typist.seen
        assert "250 entries in log.jsonl" in typist.seen


def test_verify_says_whether_the_log_is_intact(folder: Path) -> None:
    output("queues", "pause", "mail")
    assert "Not sealed yet: 1 entry" in output("audit", "verify")

    async def seal_now(app: Rota) -> None:
        assert await seal(await app.stores.get(), app.clock) is not None

    on_store(seal_now)
    result = output_json("audit", "verify")
    assert (result["ok"], result["seals"], result["entries"], result["problems"]) == (True, 1, 1, [])
    assert f"Head: {result['head']}" in output("audit", "verify", "--expect-head", result["head"])
    other = "1:" + "0" * 64
    done = invoke("audit", "verify", "--expect-head", other)
    assert (done.exit_code, "seal 1: its digest is not the expected one" in done.output) == (1, True)
