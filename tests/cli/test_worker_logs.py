"""What ``rota worker`` writes to its log: which job a line is about, and what it never says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from cli.command import make_shop, rota_command
from rota.cli.root import root

CANARY = "canary-7f3a"
TASKS = """
import logging

@app.task(max_attempts=1)
async def pay(ctx: Context, api_key: str, how: str) -> None:
    logging.getLogger("shop").warning("paying with %s", api_key)
    try:
        raise KeyError(api_key)
    except KeyError as error:
        logging.getLogger("shop").exception("cannot pay: %s", error)
        if how == "raise":
            raise ValueError(f"{api_key} was not taken\\x1b[2J\\nsecond line") from error

@app.task
def count(api_key: str) -> None:
    logging.getLogger("shop").warning("counting\\x1b[2J\\nwith %r", api_key)
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_URL", "sqlite:///shop.db")
    make_shop(tmp_path)
    with (tmp_path / "shop.py").open("a") as file:
        file.write(TASKS)
    return tmp_path


def enqueue(task: str, payload: str, *more: str) -> str:
    done = CliRunner().invoke(root, ["jobs", "enqueue", task, "--payload", payload, *more, "--json"])
    job: str = msgspec.json.decode(done.stdout)["id"]
    return job


def burst(shop: Path, form: str) -> str:
    done = rota_command("worker", "--app", "shop:app", "--burst", "--log-format", form, cwd=shop)
    assert done.returncode == 0
    return done.stderr


def test_json_log_lines_name_their_job(shop: Path) -> None:
    where = ("--queue", "till", "--tenant", "acme", "--max-attempts", "1")
    pay = enqueue("pay", f'{{"api_key": "{CANARY}", "how": "raise"}}', *where)
    count = enqueue("count", f'{{"api_key": "{CANARY}"}}')
    records: list[dict[str, Any]] = [msgspec.json.decode(line) for line in burst(shop, "json").splitlines()]
    about = {record["message"]: record for record in records}
    inside = about["paying with •••"]
    assert {name: inside[name] for name in ("job_id", "task", "queue", "tenant", "attempt")} == {
        "job_id": pay, "task": "pay", "queue": "till", "tenant": "acme", "attempt": 1,
    }  # fmt: skip
    assert inside["worker"]
    (thread,) = [record for record in records if record.get("task") == "count"]
    assert (thread["job_id"], thread["message"]) == (count, "counting\\x1b[2J\\nwith '•••'")
    (failed,) = [record for record in records if " failed: attempt 1 of 1" in record["message"]]
    assert (failed["job_id"], failed["tenant"], failed["level"]) == (pay, "acme", "error")
    assert "raise ValueError(f" in failed["traceback"]
    assert "ValueError: ••• was not taken\\x1b[2J\\nsecond line" in failed["message"]
    (started,) = [record for record in records if " started: " in record["message"]]
    assert "job_id" not in started


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_secret_of_a_payload_and_control_characters_never_reach_the_log(shop: Path, form: str) -> None:
    enqueue("pay", f'{{"api_key": "{CANARY}", "how": "raise"}}')
    enqueue("count", f'{{"api_key": "{CANARY}"}}')
    log = burst(shop, form)
    assert "canary" not in log
    assert "\x1b" not in log and "\\u001b" not in log
    assert "cannot pay" in log and "Traceback" in log


def test_each_record_is_one_line_of_json(shop: Path) -> None:
    enqueue("pay", f'{{"api_key": "{CANARY}", "how": "log"}}')
    for line in burst(shop, "json").splitlines():
        assert msgspec.json.decode(line)["level"] in ("debug", "info", "warning", "error")
