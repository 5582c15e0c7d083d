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
from command import eventually, make_shop, read_json, rota_command, started
from nowhere import nobody_listens
from typist import Typist

from rota import Rota
from rota.cli import table
from rota.cli.terminal import ENTER, LEAVE, keys
from rota.cli.top import carry_out, look
from rota.cli.top_screen import Act, Glance, Screen, pace, pressed
from rota.cli.top_view import render, share
from rota.model import Actor, Job, State
from rota.operate.views import ActivityBucket, GateView, JobView, QueueView, Visibility, job_view

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
        name=name, queued=1204, scheduled=3, running=2, oldest_due_s=75.0, per_minute=12.5,
        failed_per_minute=0.3, workers=2, gate=gate("queue", name) if closed else None,
    )  # fmt: skip


def job(task: str, state: State, **more: Any) -> JobView:
    made = NOW - timedelta(seconds=90)
    one = Job("0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60", task, state, made, made, started_at=made, **more)
    return job_view(one, Visibility(payloads=True, secrets=()))


def glance(**more: Any) -> Glance:
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
    return Glance(**{**usual, **more})


def picture(screen: Screen, width: int = 120, height: int = 30) -> str:
    return click.unstyle("\n".join(render(screen, width, height)))


# --- the picture ---------------------------------------------------------------------------------


def test_the_picture_tells_who_works_what_waits_runs_and_failed() -> None:
    text = picture(Screen(glance=glance()))
    assert "rota top  sqlite:///shop.db" in text and "2030-01-01 01:38:02Z" in text
    assert "3 workers · 1,204 due · 2 running · 4.5 jobs/s · 0 failures/min" in text
    assert "mail     1,204      3        2       1 min       12     0.3        2" in text
    assert "nap      2 min  default  w1      40% half asleep" in text
    assert "ValueError: no such order" in text
    assert text.splitlines()[-1].startswith("q quit")


def test_a_pause_is_told_on_top_and_beside_its_queue() -> None:
    text = picture(Screen(glance=glance(gate=gate(), queues=(queue("mail", closed=True),))))
    assert "‖ Everything is paused until 2030-01-01 02:38:02Z (in 1 h), by anna: upgrade" in text
    (line,) = (line for line in text.splitlines() if "mail" in line)
    assert line.startswith(" ‖  mail  ") and "(in 1 h), by anna" in line
    assert " ‖  mail  " in picture(Screen(glance=glance(queues=(queue("mail", closed=True),))), width=60)


def test_a_narrow_terminal_keeps_the_error_and_lets_the_id_go() -> None:
    narrow, wide = (picture(Screen(glance=glance()), width=width) for width in (60, 100))
    assert "no such order" in narrow and "0197f0a2" not in narrow
    assert "no such order" in wide and "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60" in wide


def test_an_idle_house_says_so_and_what_the_caller_may_not_know_is_left_out() -> None:
    empty: dict[str, Any] = {"queues": (), "running_jobs": (), "failures": ()}
    text = picture(Screen(glance=glance(workers=None, jobs_per_s=None, failures_per_min=None, **empty)))
    assert "No queue is in use." in text and "Nothing runs." in text and "No job has failed." in text
    assert "worker" not in text and "jobs/s" not in text and "failures/min" not in text
    assert "no worker is alive" in picture(Screen(glance=glance(workers=0)))


@pytest.mark.parametrize("width", [1, 20, 40, 80, 200])
@pytest.mark.parametrize("height", [1, 3, 8, 24, 60])
@pytest.mark.parametrize("helps", [False, True])
def test_the_picture_fits_every_terminal(width: int, height: int, helps: bool) -> None:
    many = tuple(queue(f"queue-{n}", closed=n % 3 == 0) for n in range(40))
    screen = Screen(glance=glance(queues=many, gate=gate()), trouble="gone", chosen="queue-39", helps=helps)
    lines = render(screen, width, height)
    assert len(lines) == height
    assert max(table.width(line) for line in lines) <= width


@pytest.mark.parametrize("height", [12, 14, 24])
def test_the_chosen_queue_is_always_in_sight(height: int) -> None:
    many = tuple(queue(f"queue-{n}") for n in range(40))
    for chosen in ("queue-0", "queue-20", "queue-39"):
        lines = render(Screen(glance=glance(queues=many), chosen=chosen), 100, height)
        (marked,) = (line for line in lines if "\x1b[7m" in line)
        assert chosen in marked and "›" in marked


def test_stored_text_cannot_steer_the_picture() -> None:
    spoiled = glance(
        place=HOSTILE,
        queues=(queue(HOSTILE, closed=True),),
        running_jobs=(
            job(HOSTILE, State.RUNNING, worker=HOSTILE, queue=HOSTILE, progress_json='{"percent": "many"}'),
        ),
        failures=(job(HOSTILE, State.FAILED, error_json=msgspec.json.encode({"type": HOSTILE}).decode()),),
    )
    for line in render(Screen(glance=spoiled, note=HOSTILE, trouble=HOSTILE), 300, 30):
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r", "\n"} & set(click.unstyle(line)), line


def test_room_is_shared_fairly() -> None:
    assert share(9, [1, 40, 40]) == [1, 4, 4]
    assert share(30, [2, 3, 4]) == [2, 3, 4]
    assert share(-2, [2, 3, 4]) == [0, 0, 0]


def test_the_pace_is_that_of_this_minute_and_the_one_before() -> None:
    def step(minutes_ago: int, succeeded: int, failed: int = 0) -> ActivityBucket:
        at = NOW.replace(second=0) - timedelta(minutes=minutes_ago)
        return ActivityBucket(at=at, name=None, succeeded=succeeded, failed=failed, cancelled=0)

    assert pace([step(2, 999), step(1, 50, failed=10), step(0, 2)], NOW) == (62 / 62, 10 * 60 / 62)
    assert pace([], NOW) == (0, 0)


# --- the keys ------------------------------------------------------------------------------------


def test_bytes_of_the_keyboard_become_keys() -> None:
    assert keys(b"q\x1b[A\x1bOB\t\x1b[Z \x1b") == ["q", "up", "down", "tab", "backtab", " ", "esc"]
    assert keys(b"\x1b[5~p") == ["\x1b[5~", "p"]
    assert keys(b"\xff?") == ["\ufffd", "?"]


def after(screen: Screen, *typed: str) -> tuple[Screen, list[Act]]:
    acts = []
    for key in typed:
        screen, act = pressed(screen, key)
        acts += [act] if act is not None else []
    return screen, acts


@pytest.mark.parametrize(
    ("typed", "acts"),
    [
        (["q"], [Act(verb="quit")]),
        (["down", " "], [Act(verb="pause", queue="default")]),
        (["tab", "tab", " "], [Act(verb="resume", queue="mail")]),
        (["up", " "], [Act(verb="resume", queue="mail")]),
        (["tab", "tab", "tab", " "], [Act(verb="pause", queue="default")]),
        ([" "], []),
        (["p"], []),
        (["p", "n", "y"], []),
        (["p", "q"], []),
        (["p", "y"], [Act(verb="pause")]),
        (["?", "q"], [Act(verb="quit")]),
        (["x", "\x1b[5~"], []),
    ],
)
def test_a_key_asks_for(typed: list[str], acts: list[Act]) -> None:
    screen = Screen(glance=glance(queues=(queue("default"), queue("mail", closed=True))))
    assert after(screen, *typed)[1] == acts


def test_pausing_everything_states_the_effect_first() -> None:
    screen, _ = after(Screen(glance=glance()), "p")
    assert "3 live workers will claim nothing, 2 running jobs will finish" in picture(screen).splitlines()[-1]
    screen, _ = after(screen, "n")
    assert picture(screen).splitlines()[-1] == "Nothing was done."
    assert after(Screen(glance=glance(gate=gate())), "p", "y")[1] == [Act(verb="resume")]


def test_a_chosen_queue_stays_chosen_when_others_come_and_go() -> None:
    screen, _ = after(Screen(glance=glance()), "tab", "tab")
    screen = msgspec.structs.replace(screen, glance=glance(queues=(queue("a"), queue("b"), queue("mail"))))
    assert after(screen, " ")[1] == [Act(verb="pause", queue="mail")]
    screen = msgspec.structs.replace(screen, glance=glance(queues=(queue("a"),)))
    screen, acts = after(screen, " ")
    assert acts == [] and "Choose a queue first" in picture(screen)


# --- the store -----------------------------------------------------------------------------------


async def test_a_glance_is_taken_and_a_switch_thrown_on_each_store(app: Rota) -> None:
    await app.enqueue("add", {"a": 1}, queue="mail")
    await app.enqueue("add", {"a": 1}, queue="mail", delay=3600)
    operations = app.operations(Actor(name="anna", role="admin", payloads=True))
    me = await operations.system.me()
    await carry_out(operations, Act(verb="pause"))
    await carry_out(operations, Act(verb="pause", queue="mail"))
    seen = await look(operations, me)
    assert (seen.due, seen.running, seen.workers, seen.jobs_per_s, seen.failures) == (1, 0, 0, 0, ())
    assert [(one.name, one.queued, one.scheduled) for one in seen.queues] == [("mail", 1, 1)]
    assert seen.gate is not None and seen.queues[0].gate is not None
    assert seen.gate.actor == "anna"
    await carry_out(operations, Act(verb="resume"))
    await carry_out(operations, Act(verb="resume", queue="mail"))
    seen = await look(operations, me)
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


def test_a_night_at_the_terminal(folder: Path) -> None:
    with (
        started("worker", "--app", "shop:app", cwd=folder),
        Typist("top", "--url", URL, "--interval", "0.2", cwd=folder) as typist,
    ):
        typist.read_until(ENTER)
        typist.read_until("half asleep")
        typist.read_until("no such order")
        typist.type("?")
        typist.read_until("this help, and back")
        typist.type("?\t\t ")
        typist.read_until("Queue slow is paused.")
        assert gates(folder) == ["queue:slow"]
        typist.type("p")
        typist.read_until("1 live worker will claim nothing")
        typist.type("y")
        typist.read_until("Everything is paused until it is resumed")
        assert gates(folder) == ["all", "queue:slow"]
        typist.type("q")
        assert typist.end() == 0
        assert typist.seen.rstrip().endswith(LEAVE)
        assert typist.modes() == typist.modes_before


def test_another_size_is_drawn_at_once(folder: Path) -> None:
    with Typist("top", "--url", URL, "--interval", "3600", cwd=folder) as typist:
        typist.read_until("? help")
        typist.resize_now(60, 12)
        typist.read_until("\x1b[J")
        drawn = typist.seen.rpartition("\x1b[H")[2].replace("\x1b[K", "").replace("\x1b[J", "")
        lines = [line.rstrip("\r") for line in drawn.split("\n")]
        assert len(lines) == 12
        assert max(map(table.width, lines)) <= 60


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_given_back_when_a_signal_ends_it(folder: Path, end: signal.Signals) -> None:
    with Typist("top", "--url", URL, cwd=folder) as typist:
        typist.read_until("? help")
        typist.process.send_signal(end)
        assert typist.end() == 0
        assert typist.seen.endswith(LEAVE) and typist.modes() == typist.modes_before


def test_ctrl_z_lends_the_terminal_back_for_a_while(folder: Path) -> None:
    with Typist("top", "--url", URL, cwd=folder) as typist:
        typist.read_until("? help")
        typist.process.send_signal(signal.SIGTSTP)
        typist.read_until(LEAVE)
        eventually(lambda: typist.modes() == typist.modes_before, "the terminal has its old modes")
        typist.process.send_signal(signal.SIGCONT)
        typist.read_until(ENTER)
        typist.read_until("? help")
        typist.type("q")
        assert typist.end() == 0


def test_off_a_terminal_it_points_to_what_a_program_can_read(folder: Path) -> None:
    result = rota_command("top", "--url", URL, cwd=folder)
    assert result.returncode == 2 and "rota stats --json" in result.stderr


def test_a_store_that_is_away_is_told_before_the_screen_is_taken(folder: Path) -> None:
    with (
        nobody_listens() as there,
        Typist("top", "--url", f"postgresql://{there}/none", cwd=folder) as typist,
    ):
        assert typist.end() == 3
        assert ENTER not in typist.seen and "rota: " in typist.seen
