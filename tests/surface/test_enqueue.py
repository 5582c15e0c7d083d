"""Arguments on their way from the caller to the task, and jobs in bulk."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import pytest

from rota import AlreadyRegistered, Backoff, ConfigError, Context, OptionError, PayloadError, Rota
from rota.model import InsertResult, Job, NewJob
from rota.tasks.handle import from_new, job_of
from rota.testing import drain


@dataclass
class Address:
    street: str
    number: int = 1


class Parcel(msgspec.Struct):
    weight: Decimal
    to: Address


class Colour(Enum):
    RED = "red"


async def test_arguments_arrive_as_their_annotations_say(app: Rota) -> None:
    seen: dict[str, Any] = {}

    @app.task
    async def take(
        parcel: Parcel,
        at: datetime,
        day: date,
        id: UUID,
        price: Decimal,
        colour: Colour,
        wait: timedelta,
        many: list[Address],
        table: dict[int, str],
        raw: bytes,
        maybe: int | None,
    ) -> None:
        seen.update(locals())
        del seen["seen"]

    given = {
        "parcel": Parcel(weight=Decimal("1.50"), to=Address("Elm", 7)),
        "at": datetime(2030, 5, 6, 7, 8, 9, 123456, tzinfo=UTC),
        "day": date(2030, 5, 6),
        "id": UUID("0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60"),
        "price": Decimal("19.99"),
        "colour": Colour.RED,
        "wait": timedelta(minutes=90),
        "many": [Address("Oak")],
        "table": {1: "one"},
        "raw": b"\x00\xff",
        "maybe": None,
    }
    await take.enqueue(**given)
    await drain(app)
    assert seen == given


async def test_text_of_every_script_survives(app: Rota) -> None:
    text = "naïve “Ω” 日本 🐍 \\u0041 \" ' % \n\t\u2028"

    @app.task
    async def echo(text: str, more: Any) -> Any:
        return [text, more]

    job = await echo.enqueue(text, more={text: [text, 1.5, -0.0, 2**63 - 1, True, None]})
    await drain(app)
    assert (await job.refresh()).output == [text, {text: [text, 1.5, -0.0, 2**63 - 1, True, None]}]


async def test_positional_arguments_and_defaults_reach_the_task(lite: Rota) -> None:
    calls: list[tuple[Any, ...]] = []

    @lite.task
    def work(a: int, ctx: Context, b: int = 2, *, c: str = "c") -> None:
        calls.append((a, b, c, ctx.job.task))

    await work.enqueue(1)
    await work.enqueue(1, 3, c="d")
    await work.enqueue(b=5, a=4)
    await drain(lite, concurrency=1)
    assert calls == [(1, 2, "c", "work"), (1, 3, "d", "work"), (4, 5, "c", "work")]
    assert (await lite.jobs()).items[-1].payload == {"a": 1}


async def test_open_ended_tasks_take_any_names(lite: Rota) -> None:
    seen: list[Any] = []

    @lite.task
    async def work(a: int, **rest: Any) -> None:
        seen.append((a, rest))

    await work.enqueue(1, colour="red", size=[1])
    await drain(lite)
    assert seen == [(1, {"colour": "red", "size": [1]})]


async def test_calling_a_task_just_calls_the_function(lite: Rota) -> None:
    @lite.task
    async def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    assert await double(4) == 8
    assert (double.__name__, double.__doc__, double.name) == ("double", "Twice as much.", "double")
    assert (await lite.jobs()).items == []


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "argument 'a' is missing"),
        ((1, 2, 3), {}, "takes a, b; 3 were given"),
        ((1,), {"a": 2}, "a was given twice"),
        ((1,), {"c": 2}, "unknown argument 'c'"),
        ((1,), {"bb": 2}, "did you mean 'b'?"),
        (("one",), {}, "argument a: expected int, got str"),
        ((1,), {"b": float("nan")}, "nan"),
        ((1,), {"b": "\0"}, "NUL"),
        ((1,), {"b": "\ud800"}, "surrogate"),
        ((1,), {"b": 2**70}, "64 bits"),
        ((1,), {"b": object()}, "type object"),
        ((1,), {"b": "x" * 2_000_000}, "limit is 1048576 bytes"),
        ((1,), {"ctx": 1}, "'ctx' is filled in by rota"),
    ],
)
async def test_arguments_that_cannot_be_used_are_named_and_nothing_is_stored(
    app: Rota, args: tuple[Any, ...], kwargs: dict[str, Any], words: str
) -> None:
    @app.task
    async def work(a: int, ctx: Context, b: Any = None) -> None: ...

    with pytest.raises(PayloadError) as caught:
        await work.enqueue(*args, **kwargs)
    with pytest.raises(PayloadError):
        work.enqueue_sync(*args, **kwargs)
    assert words in str(caught.value)
    assert (await app.stats())["queued"] == 0


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [1_000, 100_000])
async def test_arguments_nested_too_deeply_are_refused(lite: Rota, depth: int) -> None:
    with pytest.raises(PayloadError, match="nested"):
        await lite.enqueue("work", {"b": nested(depth)})
    assert (await lite.stats())["queued"] == 0


@pytest.mark.parametrize("payload", [[], [1], "text", 0, 7, False])
async def test_a_payload_that_is_no_mapping_is_refused(lite: Rota, payload: Any) -> None:
    with pytest.raises(PayloadError, match=r"pass arguments by name, as \{…\}"):
        await lite.enqueue("work", payload)
    assert (await lite.stats())["queued"] == 0


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", 7, None])
async def test_a_task_name_that_cannot_be_one_is_refused(lite: Rota, name: Any) -> None:
    with pytest.raises(OptionError, match="task="):
        await lite.enqueue(name, {})


# --- declaring --------------------------------------------------------------------------------------------


def test_a_declaration_that_cannot_work_is_refused(lite: Rota) -> None:
    async def stream() -> Any:
        yield 1

    def steps() -> Any:
        yield 1

    for function in (stream, steps):
        with pytest.raises(ConfigError, match="generator"):
            lite.task(function)
    with pytest.raises(ConfigError, match="mail"):
        lite.task("mail")  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="task="):
        lite.task(name="a\nb")(lambda: None)
    with pytest.raises(ConfigError, match="executor='fork'"):
        lite.task(name="work", executor="fork")(lambda: None)  # type: ignore[arg-type]
    assert lite.registry.names == ()


def test_a_name_taken_twice_is_refused(lite: Rota) -> None:
    lite.task(name="work")(lambda: None)
    with pytest.raises(AlreadyRegistered, match="'work'"):
        lite.task(name="work")(lambda: None)


# --- bulk -------------------------------------------------------------------------------------------------


async def test_many_jobs_come_from_a_generator_in_order(app: Rota) -> None:
    @app.task(queue="bulk", tags=["import"])
    async def note(n: int) -> None: ...

    jobs = await note.enqueue_many({"n": n} for n in range(200))
    assert (len(jobs), jobs[7].payload, jobs[-1].queue) == (200, {"n": 7}, "bulk")
    assert [job.payload["n"] for job in jobs[10:13]] == [10, 11, 12]
    stored = [job for job in (await app.jobs(limit=200)).items]
    assert [job.id for job in reversed(stored)] == [job.id for job in jobs]
    assert await drain(app) == 200


async def test_nothing_is_stored_if_one_of_many_cannot_be(app: Rota) -> None:
    @app.task
    async def note(n: int) -> None: ...

    def payloads() -> Iterator[Mapping[str, Any]]:
        yield from ({"n": n} for n in range(100))
        yield {"n": "not a number"}

    with pytest.raises(PayloadError, match="argument n: expected int, got str"):
        await note.enqueue_many(payloads())
    assert (await app.stats())["queued"] == 0


def test_the_sync_twin_goes_through_the_iterable_in_the_callers_thread(sqlite_url: str) -> None:
    app = Rota(sqlite_url)
    threads = set()

    def payloads() -> Iterator[Mapping[str, Any]]:
        for n in range(3):
            threads.add(threading.get_ident())
            yield {"n": n}

    assert len(app.enqueue_many_sync("note", payloads())) == 3
    assert threads == {threading.get_ident()}
    asyncio.run(app.close())


async def test_no_jobs_at_all_are_stored_without_complaint(app: Rota) -> None:
    assert list(await app.enqueue_many("note", [])) == []
    assert (await app.stats())["queued"] == 0


async def test_one_mapping_instead_of_many_is_refused(lite: Rota) -> None:
    with pytest.raises(PayloadError, match="by name"):
        await lite.enqueue_many("note", {"n": 1})  # type: ignore[arg-type]


BULK = """
import asyncio, resource, sys
from rota import Rota

COUNT, TEXT = int(sys.argv[2]), "x" * 1000

def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

async def main(url):
    app = Rota(url)

    @app.task
    async def note(n: int, text: str) -> None: ...

    await app.stats()
    before = memory()
    jobs = await note.enqueue_many({"n": n, "text": TEXT} for n in range(COUNT))
    print(len(jobs), (await app.stats())["queued"], (memory() - before) / (COUNT * len(TEXT)))
    await app.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize(("store", "count"), [("emptied_postgres_url", "100000"), ("sqlite_url", "30000")])
def test_a_hundred_thousand_jobs_are_stored_without_being_held_twice(
    request: pytest.FixtureRequest, store: str, count: str
) -> None:
    """In a process of its own, which knows the most memory it ever had."""
    command = [sys.executable, "-c", BULK, request.getfixturevalue(store), count]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    made, queued, share = done.stdout.split()
    assert (made, queued) == (count, count)
    assert float(share) < 2.0, f"the call took {share} times the bytes of its payloads"


def test_a_handle_of_a_new_job_has_every_field_as_stored(sqlite_url: str) -> None:
    """Handles are made by position: a field that is added to jobs must not shift the others."""
    now = datetime(2030, 1, 1, tzinfo=UTC)
    new = NewJob(
        id="x", task="t", payload_json="[1]", queue="q", tenant="n", priority=3, run_at=now, max_attempts=9,
        timeout=1.5, backoff=Backoff.none(), key="k", auto_remove=True, tags=("a",), parent="p", origin="job",
        schedule="s", scheduled_for=now,
    )  # fmt: skip
    app = Rota(sqlite_url)
    handle, stored = from_new(new, InsertResult(id="x", outcome="created"), now, app), job_of(new, now)
    assert {name: getattr(handle, name) for name in Job.__struct_fields__} == msgspec.structs.asdict(stored)
    assert handle.access is app


async def test_an_option_among_the_arguments_is_named_with_its_place(lite: Rota) -> None:
    @lite.task
    async def send(order_id: int, note: str = "") -> None: ...

    with pytest.raises(
        PayloadError, match=r"it takes order_id, note\. delay is a job option: \.options\(delay=…\)"
    ):
        await send.enqueue(order_id=1, delay=10)  # type: ignore[call-arg]


async def test_a_context_without_an_annotation_is_explained(lite: Rota) -> None:
    @lite.task
    async def send(ctx, order_id: int) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(PayloadError, match=r"argument 'ctx' is missing.*annotate it: ctx: Context"):
        await send.enqueue(order_id=1)


@dataclass
class Receipt:
    number: int
    at: datetime


async def test_a_result_has_the_type_that_the_task_returns(lite: Rota) -> None:
    @lite.task
    async def issue(number: int) -> Receipt:
        return Receipt(number, datetime(2030, 1, 1, tzinfo=UTC))

    @lite.task
    def pair() -> tuple[int, str]:
        return 1, "a"

    @lite.task
    def untrue() -> int:
        return "text"  # type: ignore[return-value]

    jobs = [await issue.enqueue(7), await pair.enqueue(), await untrue.enqueue()]
    await drain(lite)
    assert await jobs[0].result(1) == Receipt(7, datetime(2030, 1, 1, tzinfo=UTC))
    assert [await job.result(1) for job in jobs[1:]] == [(1, "a"), "text"]
    assert (await jobs[0].refresh()).output == {"number": 7, "at": "2030-01-01T00:00:00Z"}
