"""``rota top``: the picture as a pure function, the keys as a table, and one real terminal."""

from __future__ import annotations

import asyncio
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from cli.closed_port import closed_port
from cli.command import eventually, make_shop, read_json, rota_command, started
from cli.terminal_session import TerminalSession
from rota import Rota
from rota.cli.commands.top import carry_out, take_snapshot
from rota.cli.parts.full_screen import ENTER, LEAVE, keys
from rota.cli.parts.top_screen import TopAction, TopScreen, TopSnapshot, fullest, press, throughput
from rota.cli.parts.top_view import render, share
from rota.model import Actor, Held, Job, State
from rota.operate.views import (
    ActivityBucket,
    GateView,
    JobView,
    QueueView,
    Visibility,
    job_view,
    limit_view,
)
from rota.terminal import table

URL = "sqlite:///shop.db"
NOW = datetime(2030, 1, 1, 1, 38, 2, tzinfo=UTC)
HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202eevil\r\nforged line"


def gate(scope: str = "all", name: str | None = None) -> GateView:
    return GateView(
        id="all", scope=scope, name=name, tenant=None, reason="upgrade", actor="anna", since_at=NOW,
        until_at=NOW + timedelta(hours=1),
    )  # fmt: skip


def queue(name: str, closed: bool = False) -> QueueView:
    return QueueView(
        name=name, due=1204, due_later=3, running=2, oldest_due_s=75.0, per_minute=12.5,
        failed_per_minute=0.3, workers=2, gate=gate("queue", name) if closed else None,
    )  # fmt: skip


def job(task: str, state: State, **more: Any) -> JobView:
    made = NOW - timedelta(seconds=90)
    one = Job("0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60", task, state, made, made, started_at=made, **more)
    return job_view(one, Visibility(payloads=True, secrets=()))


def glance(**more: Any) -> TopSnapshot:
    usual: dict[str, Any] = {
        "place": "sqlite:///shop.db", "now": NOW, "due": 1204, "running": 2, "workers": 3, "jobs_per_s": 4.5,
        "failures_per_min": 0.0, "gate": None, "queues": (queue("default"), queue("mail")),
        "running_jobs": (
            job("nap", State.RUNNING, worker="w1", progress_json='{"percent": 40, "message": "half asleep"}'),
        ),
        "failures": (
            job("boom", State.FAILED, finished_at=NOW, attempt=3,
                error_json='{"type": "ValueError", "message": "no such order"}'),
        ),
    }  # fmt: skip
    return TopSnapshot(**{**usual, **more})


def picture(screen: TopScreen, width: int = 120, height: int = 30) -> str:
    return click.unstyle("\n".join(render(screen, width, height)))


# --- the picture ---------------------------------------------------------------------------------


def test_the_screen_shows_workers_queues_running_jobs_and_failures() -> None:
    text = picture(TopScreen(snapshot=glance()))
    assert "rota top  sqlite:///shop.db" in text and "2030-01-01 01:38:02Z" in text
    assert "3 workers · 1,204 due · 2 running · 4.5 jobs/s · 0 failures/min" in text
    assert "mail     1,204      3        2       1 min       12     0.3        2" in text
    assert "nap      2 min  default  w1      40% half asleep" in text
    assert "ValueError: no such order" in text
    assert text.splitlines()[-1].startswith("q quit")


def test_the_fullest_limits_are_shown_and_only_if_there_are_any() -> None:
    keys = tuple(Held(name=f"key:account:{n}", running=n, most=2, rule="key:account:*") for n in range(3))
    soon = NOW + timedelta(seconds=3)
    held = [
        Held(name="queue:mail", running=38, most=40, waiting_lanes=7),
        Held(name="key:account:*", running=3, most=2, keys=keys),
        Held(name="key:openai", running=4, most=None, rate="600/m", burst=20, tokens=0.4, next_token_at=soon),
    ]
    limits = fullest([limit_view(one) for one in held], 4)
    assert [one.name for one in limits] == ["key:account:2", "key:openai", "queue:mail", "key:account:1"]
    text = picture(TopScreen(snapshot=glance(limits=limits)))
    (mail,) = (line.split() for line in text.splitlines() if "queue:mail" in line)
    assert mail == ["queue:mail", "38", "of", "40", "7"]
    (rate,) = (line for line in text.splitlines() if "key:openai" in line)
    assert rate.split() == ["●", "key:openai", "4", "600/m", "0", "of", "20", "in", "3.0", "s"]
    assert "FULLEST LIMITS" not in picture(TopScreen(snapshot=glance()))


def test_a_pause_is_shown_in_the_head_and_beside_its_queue() -> None:
    text = picture(TopScreen(snapshot=glance(gate=gate(), queues=(queue("mail", closed=True),))))
    assert "‖ Everything is paused until 2030-01-01 02:38:02Z (in 1 h), by anna: upgrade" in text
    (line,) = (line for line in text.splitlines() if "mail" in line)
    assert line.startswith(" ‖  mail  ") and "(in 1 h), by anna" in line
    assert " ‖  mail  " in picture(TopScreen(snapshot=glance(queues=(queue("mail", closed=True),))), width=60)


def test_a_narrow_terminal_keeps_the_error_and_drops_the_id() -> None:
    narrow, wide = (picture(TopScreen(snapshot=glance()), width=width) for width in (60, 100))
    assert "no such order" in narrow and "0197f0a2" not in narrow
    assert "no such order" in wide and "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60" in wide


def test_empty_tables_have_an_empty_state_and_hidden_counts_are_left_out() -> None:
    empty: dict[str, Any] = {"queues": (), "running_jobs": (), "failures": ()}
    text = picture(TopScreen(snapshot=glance(workers=None, jobs_per_s=None, failures_per_min=None, **empty)))
    assert "No queue is in use." in text and "No job is running." in text and "No job has failed." in text
    assert "worker" not in text and "jobs/s" not in text and "failures/min" not in text
    assert "no worker is running" in picture(TopScreen(snapshot=glance(workers=0)))


@pytest.mark.parametrize("width", [1, 20, 40, 80, 200])
@pytest.mark.parametrize("height", [1, 3, 8, 24, 60])
@pytest.mark.parametrize("helps", [False, True])
def test_the_screen_fits_every_terminal(width: int, height: int, helps: bool) -> None:
    many = tuple(queue(f"queue-{n}", closed=n % 3 == 0) for n in range(40))
    screen = TopScreen(
        snapshot=glance(queues=many, gate=gate()), error="gone", selected="queue-39", shows_help=helps
    )
    lines = render(screen, width, height)
    assert len(lines) == height
    assert max(table.width(line) for line in lines) <= width


@pytest.mark.parametrize("height", [12, 14, 24])
def test_the_selected_queue_is_always_visible(height: int) -> None:
    many = tuple(queue(f"queue-{n}") for n in range(40))
    for chosen in ("queue-0", "queue-20", "queue-39"):
        lines = render(TopScreen(snapshot=glance(queues=many), selected=chosen), 100, height)
        (marked,) = (line for line in lines if "\x1b[7m" in line)
        assert chosen in marked and "›" in marked


def test_control_characters_in_stored_text_are_escaped() -> None:
    spoiled = glance(
        place=HOSTILE,
        queues=(queue(HOSTILE, closed=True),),
        running_jobs=(
            job(HOSTILE, State.RUNNING, worker=HOSTILE, queue=HOSTILE, progress_json='{"percent": "many"}'),
        ),
        failures=(job(HOSTILE, State.FAILED, error_json=msgspec.json.encode({"type": HOSTILE}).decode()),),
    )
    for line in render(TopScreen(snapshot=spoiled, note=HOSTILE, error=HOSTILE), 300, 30):
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r", "\n"} & set(click.unstyle(line)), line


def test_space_is_shared_fairly() -> None:
    assert share(9, [1, 40, 40]) == [1, 4, 4]
    assert share(30, [2, 3, 4]) == [2, 3, 4]
    assert share(-2, [2, 3, 4]) == [0, 0, 0]


def test_throughput_covers_this_minute_and_the_one_before() -> None:
    def step(minutes_ago: int, succeeded: int, failed: int = 0) -> ActivityBucket:
        at = NOW.replace(second=0) - timedelta(minutes=minutes_ago)
        return ActivityBucket(at=at, name=None, succeeded=succeeded, failed=failed, cancelled=0)

    assert throughput([step(2, 999), step(1, 50, failed=10), step(0, 2)], NOW) == (1.0, round(600 / 62, 3))
    assert throughput([], NOW) == (0, 0)


# --- the keys ------------------------------------------------------------------------------------


def test_bytes_of_the_keyboard_become_keys() -> None:
    assert keys(b"q\x1b[A\x1bOB\t\x1b[Z \x1b") == ["q", "up", "down", "tab", "backtab", " ", "esc"]
    assert keys(b"\x1b[5~p") == ["\x1b[5~", "p"]
    assert keys(b"\xff?") == ["\ufffd", "?"]


def after(screen: TopScreen, *typed: str) -> tuple[TopScreen, list[TopAction]]:
    acts = []
    for key in typed:
        screen, act = press(screen, key)
        acts += [act] if act is not None else []
    return screen, acts


@pytest.mark.parametrize(
    ("typed", "acts"),
    [
        (["q"], [TopAction(verb="quit")]),
        (["down", " "], [TopAction(verb="pause", queue="default")]),
        (["tab", "tab", " "], [TopAction(verb="resume", queue="mail")]),
        (["up", " "], [TopAction(verb="resume", queue="mail")]),
        (["tab", "tab", "tab", " "], [TopAction(verb="pause", queue="default")]),
        ([" "], []),
        (["p"], []),
        (["p", "n", "y"], []),
        (["p", "q"], []),
        (["p", "y"], [TopAction(verb="pause")]),
        (["?", "q"], [TopAction(verb="quit")]),
        (["x", "\x1b[5~"], []),
    ],
)
def test_a_key_requests(typed: list[str], acts: list[TopAction]) -> None:
    screen = TopScreen(snapshot=glance(queues=(queue("default"), queue("mail", closed=True))))
    assert after(screen, *typed)[1] == acts


def test_pausing_everything_shows_the_effect_first() -> None:
    screen, _ = after(TopScreen(snapshot=glance()), "p")
    assert (
        "3 running workers will start no jobs, 2 running jobs will finish" in picture(screen).splitlines()[-1]
    )
    screen, _ = after(screen, "n")
    assert picture(screen).splitlines()[-1] == "Nothing was changed."
    assert after(TopScreen(snapshot=glance(gate=gate())), "p", "y")[1] == [TopAction(verb="resume")]


def test_a_selected_queue_stays_selected_when_others_change() -> None:
    screen, _ = after(TopScreen(snapshot=glance()), "tab", "tab")
    screen = msgspec.structs.replace(screen, snapshot=glance(queues=(queue("a"), queue("b"), queue("mail"))))
    assert after(screen, " ")[1] == [TopAction(verb="pause", queue="mail")]
    screen = msgspec.structs.replace(screen, snapshot=glance(queues=(queue("a"),)))
    screen, acts = after(screen, " ")
    assert acts == [] and "Select a queue first" in picture(screen)


# --- the store -----------------------------------------------------------------------------------


async def test_a_snapshot_and_an_action_work_on_each_store(app: Rota) -> None:
    await app.enqueue("add", {"a": 1}, queue="mail")
    await app.enqueue("add", {"a": 1}, queue="mail", delay=3600)
    operations = app.operations(Actor(name="anna", role="admin", payloads=True))
    me = await operations.system.me()
    await carry_out(operations, TopAction(verb="pause"))
    await carry_out(operations, TopAction(verb="pause", queue="mail"))
    seen = await take_snapshot(operations, me)
    assert (seen.due, seen.running, seen.workers, seen.jobs_per_s, seen.failures) == (1, 0, 0, 0, ())
    assert [(one.name, one.due, one.due_later) for one in seen.queues] == [("mail", 1, 1)]
    assert seen.gate is not None and seen.queues[0].gate is not None
    assert seen.gate.actor == "anna"
    await carry_out(operations, TopAction(verb="resume"))
    await carry_out(operations, TopAction(verb="resume", queue="mail"))
    seen = await take_snapshot(operations, me)
    assert seen.gate is None and seen.queues[0].gate is None


# --- a terminal ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_shop(tmp_path)

    async def fill() -> None:
        app = Rota(f"sqlite:///{tmp_path / 'shop.db'}")
        await app.enqueue("nap", {"seconds": 60}, queue="slow")
        await app.enqueue("boom", {"text": "no such order"}, max_attempts=1)
        await app.close()

    asyncio.run(fill())
    return tmp_path


def gates(folder: Path) -> list[str]:
    return [one["id"] for one in read_json("gates", "list", "--url", URL, cwd=folder)["items"]]


def test_a_session_at_the_terminal(folder: Path) -> None:
    with (
        started("worker", "--app", "shop:app", cwd=folder),
        TerminalSession("top", "--url", URL, "--interval", "0.2", cwd=folder) as typist,
    ):
        typist.read_until(ENTER)
        typist.read_until("half asleep")
        typist.read_until("no such order")
        typist.type("?")
        typist.read_until("Show or hide this help")
        typist.type("?\t\t ")
        typist.read_until("Paused queue slow.")
        assert gates(folder) == ["queue:slow"]
        typist.type("p")
        typist.read_until("1 running worker will start no jobs")
        typist.type("y")
        typist.read_until("Everything is paused until resumed")
        assert gates(folder) == ["all", "queue:slow"]
        typist.type("q")
        assert typist.end() == 0
        assert typist.seen.rstrip().endswith(LEAVE)
        assert typist.modes() == typist.modes_before


def test_a_new_size_is_drawn_at_once(folder: Path) -> None:
    with TerminalSession("top", "--url", URL, "--interval", "3600", cwd=folder) as typist:
        typist.read_until("? help")
        typist.resize_now(60, 12)
        typist.read_until("\x1b[J")
        drawn = typist.seen.rpartition("\x1b[H")[2].replace("\x1b[K", "").replace("\x1b[J", "")
        lines = [line.rstrip("\r") for line in drawn.split("\n")]
        assert len(lines) == 12
        assert max(map(table.width, lines)) <= 60


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal(folder: Path, end: signal.Signals) -> None:
    with TerminalSession("top", "--url", URL, cwd=folder) as typist:
        typist.read_until("? help")
        typist.process.send_signal(end)
        assert typist.end() == 0
        assert typist.seen.endswith(LEAVE) and typist.modes() == typist.modes_before


def test_ctrl_z_restores_the_terminal_until_resumed(folder: Path) -> None:
    with TerminalSession("top", "--url", URL, cwd=folder) as typist:
        typist.read_until("? help")
        typist.process.send_signal(signal.SIGTSTP)
        typist.read_until(LEAVE)
        # as a shell does: a signal to continue before the process has stopped would have no effect
        eventually(typist.is_stopped, "the process has stopped")
        assert typist.modes() == typist.modes_before
        typist.process.send_signal(signal.SIGCONT)
        typist.read_until(ENTER)
        typist.read_until("? help")
        typist.type("q")
        assert typist.end() == 0


def test_off_a_terminal_it_suggests_stats_json(folder: Path) -> None:
    result = rota_command("top", "--url", URL, cwd=folder)
    assert result.returncode == 2 and "rota stats --json" in result.stderr


def test_an_unavailable_store_is_reported_before_the_screen_is_used(folder: Path) -> None:
    with (
        closed_port() as there,
        TerminalSession("top", "--url", f"postgresql://{there}/none", cwd=folder) as typist,
    ):
        assert typist.end() == 3
        assert ENTER not in typist.seen and "rota: " in typist.seen
