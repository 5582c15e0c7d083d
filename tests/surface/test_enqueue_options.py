"""Job options: what each of them does, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest

import rota
from rota import Backoff, DuplicateJob, OptionError, Rota
from rota.core.ids import uuid7
from rota.testing import FakeClock, drain


async def test_options_come_from_the_call_then_the_task_then_the_settings(
    make_app: Any, sqlite_url: str
) -> None:
    app = make_app(sqlite_url, max_attempts=7)

    @app.task(queue="mail", priority=5, tags=["a", "b"], tenant="acme")
    async def work() -> None: ...

    @app.task
    async def plain() -> None: ...

    usual = await work.enqueue()
    other = await work.options(queue="sms", priority=9, max_attempts=2).options(tags=["c"]).enqueue()
    named = await app.enqueue("work", priority=1)
    assert (usual.queue, usual.priority, usual.tags, usual.tenant, usual.max_attempts) == (
        "mail", 5, ("a", "b"), "acme", 7,
    )  # fmt: skip
    assert (other.queue, other.priority, other.tags, other.max_attempts) == ("sms", 9, ("c",), 2)
    assert (named.queue, named.priority) == ("mail", 1)
    assert (await plain.enqueue()).queue == "default"


async def test_options_are_stored_with_the_job(app: Rota) -> None:
    parent = await app.enqueue("parent")
    job = await app.enqueue(
        "work",
        queue="mail",
        priority=-3,
        tenant="acme",
        delay=60,
        key="k:1",
        max_attempts=9,
        backoff=Backoff(base=1, factor=3, cap=None, jitter=0),
        timeout=timedelta(minutes=2),
        auto_remove=True,
        tags=["a", "b", "a"],
        parent=parent.id,
    )
    stored = await job.refresh()
    assert (stored.queue, stored.priority, stored.tenant, stored.key) == ("mail", -3, "acme", "k:1")
    assert (stored.max_attempts, stored.timeout, stored.auto_remove) == (9, 120.0, True)
    assert stored.backoff == Backoff(base=1, factor=3, cap=None, jitter=0)
    assert (stored.tags, stored.parent, stored.origin) == (("a", "b"), parent.id, "job")
    assert stored.run_at - stored.created_at == timedelta(seconds=60)
    assert [child.id for child in (await app.jobs(parent=parent.id)).items] == [job.id]


@pytest.mark.parametrize("how", ["delay", "timedelta", "text", "run_at", "elsewhere"])
async def test_a_job_does_not_run_before_it_is_due(still_app: Rota, clock: FakeClock, how: str) -> None:
    @still_app.task
    async def work() -> None: ...

    due = clock.now() + timedelta(seconds=90)
    choice: dict[str, Any] = {
        "delay": {"delay": 90},
        "timedelta": {"delay": timedelta(minutes=1.5)},
        "text": {"delay": "1m30s"},
        "run_at": {"run_at": due},
        "elsewhere": {"run_at": due.astimezone(timezone(timedelta(hours=-5)))},
    }[how]
    job = await work.options(**choice).enqueue()
    assert job.run_at == due
    clock.advance(89.999)
    assert await drain(still_app) == 0
    clock.advance(0.001)
    assert await drain(still_app) == 1


async def test_a_due_time_in_the_past_is_due_now(still_app: Rota, clock: FakeClock) -> None:
    @still_app.task
    async def work() -> None: ...

    await work.options(run_at=datetime(2001, 1, 1, tzinfo=UTC)).enqueue()
    await work.options(delay=0).enqueue()
    assert await drain(still_app) == 2


# --- keys -----------------------------------------------------------------------------------------


async def test_a_key_returns_the_live_job_that_holds_it(app: Rota) -> None:
    first = await app.enqueue("work", {"n": 1}, key="k", priority=4)
    again = await app.enqueue("work", {"n": 2}, key="k")
    assert (again.id, again.payload, again.priority) == (first.id, {"n": 1}, 4)
    assert (await app.stats())["queued"] == 1


async def test_a_key_belongs_to_its_tenant(app: Rota) -> None:
    ours = await app.enqueue("work", key="k", tenant="ours")
    theirs = await app.enqueue("work", key="k", tenant="theirs")
    assert ours.id != theirs.id


async def test_a_key_is_free_again_when_its_job_has_ended(app: Rota) -> None:
    @app.task
    async def work() -> None: ...

    first = await work.options(key="k").enqueue()
    await drain(app)
    second = await work.options(key="k", on_conflict="raise").enqueue()
    assert first.id != second.id
    await second.cancel()
    assert (await work.options(key="k", on_conflict="raise").enqueue()).id != second.id


async def test_a_taken_key_can_raise_and_names_the_holder(app: Rota) -> None:
    holder = await app.enqueue("work", {"n": 1}, key="k")
    with pytest.raises(DuplicateJob, match=f"'k' is held by job {holder.id}.*queued") as caught:
        await app.enqueue("work", {"n": 2}, key="k", on_conflict="raise")
    assert caught.value.job_id == holder.id
    assert (await app.stats())["queued"] == 1


async def test_a_waiting_job_can_be_replaced(still_app: Rota, clock: FakeClock) -> None:
    holder = await still_app.enqueue("work", {"n": 1}, key="k", delay=60)
    clock.advance(1)
    newer = await still_app.enqueue("work", {"n": 2}, key="k", on_conflict="replace", priority=3)
    assert (newer.id, newer.payload, newer.priority) == (holder.id, {"n": 2}, 3)
    assert newer.run_at == clock.now()
    assert (await still_app.stats())["queued"] == 1


async def test_a_running_job_is_not_replaced(app: Rota) -> None:
    told: list[Any] = []

    @app.task
    async def work(n: int) -> None:
        with pytest.raises(DuplicateJob, match="running") as caught:
            await work.options(key="k", on_conflict="replace").enqueue(n=2)
        told.append(caught.value.job_id)

    job = await work.options(key="k").enqueue(n=1)
    await drain(app)
    assert told == [job.id]


# --- what is refused ------------------------------------------------------------------------------


BAD: list[tuple[str, Any, str]] = [
    ("queue", "", "1 to 200 characters"),
    ("queue", "x" * 201, "1 to 200 characters"),
    ("queue", "a\0b", "unprintable"),
    ("queue", "\ud800", "unprintable"),
    ("queue", 7, "must be text"),
    ("tenant", "a\nb", "unprintable"),
    ("key", "", "1 to 200"),
    ("priority", 1.5, "whole number"),
    ("priority", True, "whole number"),
    ("priority", 2**31, "whole number"),
    ("delay", -1, "from 0 s"),
    ("delay", float("nan"), "give seconds or text"),
    ("delay", "soon", "such as '15m'"),
    ("run_at", "tomorrow", "must be a datetime"),
    ("run_at", datetime(2030, 1, 1), "has no time zone"),
    ("on_conflict", "ignore", "return, raise, replace"),
    ("max_attempts", 0, "1 to 100"),
    ("max_attempts", 101, "1 to 100"),
    ("backoff", 5, "must be a Backoff"),
    ("timeout", 0, "0.001"),
    ("timeout", float("inf"), "give seconds or text"),
    ("auto_remove", "yes", "True or False"),
    ("tags", "mail", "list of texts"),
    ("tags", [1], "must be text"),
    ("tags", [str(n) for n in range(21)], "at most 20"),
    ("parent", "no-id", "job id"),
]


@pytest.mark.parametrize(("option", "value", "remedy"), BAD)
async def test_a_bad_value_is_refused_by_name_with_the_remedy(
    lite: Rota, option: str, value: Any, remedy: str
) -> None:
    with pytest.raises(OptionError) as caught:
        await lite.enqueue("work", {}, **{option: value})  # type: ignore[misc]
    message = str(caught.value)
    assert option.removesuffix("s") in message and remedy in message
    with pytest.raises(OptionError):
        lite.enqueue_sync("work", {}, **{option: value})  # type: ignore[misc]
    assert (await lite.stats())["queued"] == 0


@pytest.mark.parametrize(
    "policy", [Backoff(base=-1), Backoff(factor=0.5), Backoff(jitter=float("nan")), Backoff(cap=-1)]
)
def test_a_backoff_that_makes_no_sense_is_refused(lite: Rota, policy: Backoff) -> None:
    with pytest.raises(OptionError, match="backoff"):
        lite.task(name="work", backoff=policy)(lambda: None)


async def test_two_due_times_are_refused(lite: Rota, clock: FakeClock) -> None:
    with pytest.raises(OptionError, match="delay and run_at were both given"):
        await lite.enqueue("work", delay=5, run_at=clock.now())


async def test_an_unknown_option_suggests_the_nearest(lite: Rota) -> None:
    with pytest.raises(OptionError, match=r"no job option 'prioritty'; did you mean priority\?"):
        await lite.enqueue("work", prioritty=5)  # type: ignore[call-arg]
    with pytest.raises(OptionError, match=r"no job option 'zzz'; options are: queue"):
        lite.task(name="work", zzz=5)(lambda: None)  # type: ignore[call-overload]
    with pytest.raises(OptionError, match=r"'zzz'.*argument of the task belongs in the payload"):
        await lite.enqueue("work", zzz=5)  # type: ignore[call-arg]


@pytest.mark.parametrize("option", ["run_at", "delay", "parent", "connection"])
def test_what_belongs_to_one_job_is_refused_on_a_task(lite: Rota, option: str) -> None:
    with pytest.raises(OptionError, match=rf"{option} belongs to one job.*\.options\({option}=…\)"):
        lite.task(name="work", **{option: "x"})(lambda: None)  # type: ignore[call-overload]
    assert lite.registry.names == ()


# --- a chosen id -----------------------------------------------------------------------------------


async def test_a_chosen_id_stores_one_job_however_often_it_is_enqueued(app: Rota) -> None:
    @app.task
    async def work(n: int) -> int:
        return n

    chosen = rota.new_id()
    first = await work.options(id=chosen).enqueue(n=1)
    again = await work.options(id=UUID(chosen)).enqueue(n=2)
    assert (first.id, again.id, again.payload) == (chosen, chosen, {"n": 1})
    await drain(app)
    late = await app.enqueue("work", {"n": 3}, id=chosen.upper())
    assert (late.id, late.state, late.output) == (chosen, "succeeded", 1)
    assert work.options(id=chosen).enqueue_sync(n=4).state == "succeeded"
    assert await drain(app) == 0
    assert len((await app.jobs(task="work")).items) == 1


async def test_an_id_that_does_not_sort_by_time_is_refused(app: Rota) -> None:
    ahead = uuid7(int((app.clock.now().timestamp() + 2 * 86400) * 1000), 1)
    for wrong, words in (
        (uuid4(), "UUIDv7"),
        (str(uuid4()), "rota.new_id"),
        ("42", "key="),
        (42, "UUIDv7"),
        (ahead, "a day ahead"),
    ):
        with pytest.raises(OptionError, match=words):
            await app.enqueue("work", id=wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="one job"):
        await app.enqueue_many("work", [{}, {}], id=rota.new_id())
    with pytest.raises(OptionError, match="belongs to one job"):
        app.task(name="work", id=rota.new_id())(lambda: None)  # type: ignore[call-overload]


def test_new_ids_increase() -> None:
    made = [rota.new_id() for _ in range(100)]
    assert made == sorted(set(made))
