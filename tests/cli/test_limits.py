"""``rota limits``: list with fill bars, show, set and drop, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.in_process import enqueue, invoke, on_store, output, output_json
from rota import Limit, Rota
from rota.cli.parts.limit_detail import bar
from rota.model import ClaimRequest, LimitRule


async def claim_all(app: Rota) -> None:
    await (await app.stores.get()).turn((), ClaimRequest(worker="w1", limit=9, lease_s=60), None)


async def declare(app: Rota) -> None:
    rule = LimitRule(name="queue:mail", declared=Limit(running=3, rate="5/s"))
    await (await app.stores.get()).put_rules([rule], None)


def test_limits_are_set_listed_shown_and_dropped(folder: Path) -> None:
    assert "rota limits set queue:mail --running 40" in output("limits", "list")
    on_store(declare)
    said = invoke("limits", "set", "queue:mail", "--running", "4", "--rate", "100/m", "--burst", "20")
    assert said.exit_code == 0 and "0 of 4" in said.stdout and "code: 3 running, 5/s" in said.stdout
    assert "! no worker, schedule or recent job names queue 'mail'" in said.stderr
    job = enqueue(queue="mail")
    enqueue(queue="mail", concurrency_key="a:1")
    output("limits", "set", "key:a:*", "--running", "1", "--strict")
    on_store(claim_all)
    text = output("limits", "list")
    assert "█████░░░░░ 2 of 4" in text and "██████████ 1, 1 each" in text and " of 20" in text
    shown = output("limits", "show", "queue:mail")
    assert job in shown and "add on w1 for" in shown
    assert "key:a:1" in output("limits", "show", "key:a:*")
    one = output_json("limits", "show", "key:a:1")
    assert (one["rule"], one["running"], one["most"], one["is_full"]) == ("key:a:*", 1, 1, True)
    assert "The limit of the code holds again." in output("limits", "drop", "queue:mail")
    assert output("limits", "drop", "key:a:*") == "Dropped limit key:a:*.\n"
    output("limits", "set", "queue:mail", "--running", "9")
    assert output_json("limits", "drop", "queue:mail")["most"] == 3
    (left,) = output_json("limits", "list")["items"]
    assert (left["name"], left["source"], left["most"]) == ("queue:mail", "code", 3)
    for name in ("key:a:*", "key:a:1"):
        output("limits", "set", name, "--running", "1")
    assert output_json("limits", "drop", "key:a:1") is None  # though its family is limited
    output("limits", "drop", "key:a:*")
    again = invoke("limits", "drop", "key:a:*")
    assert (again.exit_code, again.stderr) == (1, "rota: there is no limit 'key:a:*'\n")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["queue:mail", "--rate", "fast"], "rate='fast': is not a rate"),
        (["queue:mail", "--rate", "0/s"], "pause it instead"),
        (["queue:mail", "--running", "0"], "running=0: would let nothing run; pause it instead"),
        (["queue:mail", "--running", "1", "--burst", "2"], "burst=2: belongs to a rate"),
        (["queue:mail", "--running", "1", "--strict"], "strict=True"),
        (["queue:mail"], "give --running, --rate or both"),
        (["fax:mail", "--running", "1"], "is not the name of a limit; write queue:NAME"),
        ([f"key:{'x' * 201}", "--running", "1"], "1 to 200 printable characters"),
    ],
)
def test_a_limit_that_makes_no_sense_is_a_usage_error(folder: Path, args: list[str], said: str) -> None:
    result = invoke("limits", "set", *args)
    assert result.exit_code == 2 and said in result.stderr
    assert output_json("limits", "list")["items"] == []


def test_jobs_are_enqueued_with_their_key_units_and_price(folder: Path) -> None:
    options = ["--concurrency-key", "a:1", "--units", "3", "--price", "1.5"]
    job = output_json("jobs", "enqueue", "add", *options)
    assert (job["concurrency_key"], job["units"], job["price"]) == ("a:1", 3, 1.5)
    output("limits", "set", "key:a:*", "--rate", "2/s")
    refused = invoke("jobs", "enqueue", "add", *options)
    assert refused.exit_code == 2 and "units=3: is more than the burst of limit key:a:*, 2" in refused.stderr
    too_long = invoke("jobs", "enqueue", "add", "--concurrency-key", "x" * 201)
    assert too_long.exit_code == 2 and "must have 1 to 200 characters" in too_long.stderr
    unknown = invoke("jobs", "enqueue", "add", "--concurrency-key", "a:{nope}")
    assert unknown.exit_code == 2 and "the job is given no argument 'nope'" in unknown.stderr
    assert "units=0" in invoke("jobs", "enqueue", "add", "--units", "0").stderr


def test_a_bar_is_full_only_if_the_limit_is_and_empty_only_if_nothing_runs() -> None:
    assert [bar(part, 40).count("█") for part in (0, 1, 20, 39, 40, 50)] == [0, 1, 5, 9, 10, 10]
