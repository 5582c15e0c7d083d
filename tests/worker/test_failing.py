"""How a task's errors are treated: failed at once, retried by kind, delayed by a function, and logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rota import Event, Fail, OptionError, Rota, TaskSet
from rota.testing import FakeClock, drain


class Refused(ValueError):
    pass


class Never(Refused):
    pass


PROCESS_TASKS = """
from rota import Fail, Rota

app = Rota("sqlite:///{path}/rota.db")


def wait(attempt, error):
    return 100 * attempt + len(str(error))


@app.task(executor="process", max_attempts=5, fail_on=KeyError, backoff=wait)
def work(how: str) -> None:
    if how == "fail":
        raise Fail("no such order", details={{"order": 7}})
    raise {{"key": KeyError, "value": ValueError}}[how]("four")
"""


async def test_fail_ends_the_job_at_once_with_its_details(app: Rota) -> None:
    @app.task(max_attempts=5)
    async def work(password: str) -> None:
        raise Fail(f"{password} was refused", details={"order": 7, "by": ["bank", f"with {password}"]})

    job = await work.enqueue("hunter22")
    await drain(app)
    job = await job.refresh()
    assert (job.state, job.attempt) == ("failed", 1)
    assert (job.error["type"], job.error["message"]) == ("Fail", "••• was refused")
    assert job.error["details"] == {"order": 7, "by": ["bank", "with •••"]}


@pytest.mark.parametrize("details", [object(), {"text": "x" * 20_000}])
async def test_details_that_cannot_be_stored_do_not_save_the_job(app: Rota, details: object) -> None:
    @app.task
    def work() -> None:
        raise Fail("no use", details=details)

    job = await work.enqueue()
    await drain(app)
    job = await job.refresh()
    assert (job.state, job.error["details"]) == ("failed", None)
    assert job.error["message"].startswith("no use (its details are not stored: ")


@pytest.mark.parametrize(
    ("rules", "error", "state"),
    [
        ({"fail_on": Refused}, Never(), "failed"),
        ({"fail_on": [Refused]}, ValueError(), "queued"),
        ({"retry_on": (Refused, KeyError)}, Never(), "queued"),
        ({"retry_on": Refused}, ValueError(), "failed"),
        ({"retry_on": Refused, "fail_on": Never}, Never(), "failed"),
        ({"retry_on": Refused, "fail_on": Never}, Refused(), "queued"),
    ],
)
async def test_the_type_of_an_error_decides_whether_it_is_retried(
    app: Rota, rules: dict[str, Any], error: Exception, state: str
) -> None:
    @app.task(**rules)
    def work() -> None:
        raise error

    job = await work.enqueue()
    await drain(app)
    assert (await job.refresh()).state == state


@pytest.mark.parametrize(
    ("kind", "state"), [(TimeoutError, "failed"), (OSError, "failed"), (KeyError, "queued")]
)
async def test_a_timeout_counts_as_a_timeout_error(app: Rota, kind: type[Exception], state: str) -> None:
    @app.task(fail_on=kind, timeout=0.01)
    async def work() -> None:
        await asyncio.Event().wait()

    job = await work.enqueue()
    await drain(app)
    assert (await job.refresh()).state == state


async def test_a_set_of_tasks_has_rules_for_all_of_its_tasks(app: Rota) -> None:
    tasks = TaskSet(fail_on=Refused)

    @tasks.task
    async def work() -> None:
        raise Refused

    app.include(tasks)
    job = await work.enqueue()
    await drain(app)
    assert (await job.refresh()).state == "failed"


async def test_a_function_decides_how_long_to_wait(app: Rota, clock: FakeClock) -> None:
    asked: list[tuple[int, str]] = []

    def wait(attempt: int, error: BaseException) -> timedelta:
        asked.append((attempt, str(error)))
        return timedelta(minutes=attempt)

    @app.task(max_attempts=3, backoff=wait)
    async def work() -> None:
        raise ValueError("busy")

    job = await work.enqueue()
    for attempt in (1, 2):
        await drain(app)
        job = await job.refresh()
        assert job.run_at - clock.now() == timedelta(minutes=attempt)
        clock.advance(60 * attempt)
    await drain(app)
    assert (await job.refresh()).state == "failed"
    assert asked[:2] == [(1, "busy"), (2, "busy")]


@pytest.mark.parametrize("answer", [-1, "soon", float("nan"), True, KeyError("x")])
async def test_a_function_that_fails_leaves_the_standard_backoff(
    app: Rota, clock: FakeClock, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def wait(attempt: int, error: BaseException) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    @app.task(backoff=wait)
    async def work() -> None:
        raise ValueError("busy")

    job = await work.enqueue()
    await drain(app)
    assert (await job.refresh()).run_at - clock.now() == timedelta(seconds=5)
    assert "task 'work': its backoff function failed" in caplog.text


async def test_a_process_task_has_the_same_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "process_rules.py").write_text(PROCESS_TASKS.format(path=tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    from process_rules import app, work  # type: ignore[import-not-found]

    events: list[Event] = []
    app.on("job.failed")(events.append)
    failed, refused, later = [await work.enqueue(how=how) for how in ("fail", "key", "value")]
    await drain(app)
    failed, refused, later = [await job.refresh() for job in (failed, refused, later)]
    assert (failed.state, failed.error["details"]) == ("failed", {"order": 7})
    assert (refused.state, refused.error["type"]) == ("failed", "KeyError")
    assert later.state == "queued"
    assert 90 < (later.run_at - app.clock.now()).total_seconds() <= 104
    raised = {event.job.error["type"]: event.exception for event in events if event.job is not None}
    assert str(raised["KeyError"]) == "'four'" and type(raised["KeyError"]).__name__ == "KeyError"
    await app.close()


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"fail_on": "ValueError"}, "fail_on='ValueError': must be exception classes"),
        ({"retry_on": (ValueError, KeyboardInterrupt)}, "retry_on=<class 'KeyboardInterrupt'>"),
        ({"fail_on": ValueError("x")}, "must be exception classes"),
        ({"backoff": lambda attempt: 1}, "must take two arguments"),
        ({"backoff": 5}, "must be a Backoff"),
    ],
)
def test_a_wrong_rule_is_reported_where_it_is_declared(app: Rota, rules: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words.replace("(", r"\(")):
        app.task(name="work", **rules)(lambda: None)


def test_a_rule_of_the_code_cannot_be_given_to_one_job(app: Rota) -> None:
    @app.task
    async def work() -> None: ...

    given: list[dict[str, Any]] = [{"fail_on": KeyError}, {"backoff": lambda attempt, error: 1.0}]
    for one in given:
        with pytest.raises(OptionError, match=r"belongs to the task's code.*@app\.task"):
            work.options(**one)


# --- seen where people look --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempts", "level", "name"), [(2, "WARNING", "job.retried"), (1, "ERROR", "job.failed")]
)
@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_a_failed_attempt_is_logged_with_its_traceback_and_the_hook_gets_the_exception(
    app: Rota, caplog: pytest.LogCaptureFixture, attempts: int, level: str, name: str, executor: str
) -> None:
    events: list[Event] = []
    app.on(name)(events.append)
    error = Refused("no such order")

    def work() -> None:
        raise error

    async def work_async() -> None:
        raise error

    function: Callable[..., Any] = work_async if executor == "async" else work
    task = app.task(name="pay", max_attempts=attempts, queue="till")(function)
    job = await task.options(tenant="acme").enqueue()
    await drain(app)
    (record,) = [one for one in caplog.records if "Refused: no such order" in one.getMessage()]
    assert record.levelname == level
    assert record.exc_info is not None and record.exc_info[1] is error
    assert record.exc_info[2] is not None
    assert record.exc_info[2].tb_frame.f_code.co_filename == __file__  # from the task's own code on
    fields = {one: getattr(record, one) for one in ("job_id", "task", "queue", "tenant", "attempt")}
    assert fields == {"job_id": job.id, "task": "pay", "queue": "till", "tenant": "acme", "attempt": 1}
    (event,) = events
    assert event.exception is error


async def test_an_exception_that_quotes_a_secret_is_logged_without_it(
    app: Rota, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(max_attempts=1)
    async def pay(password: str) -> None:
        try:
            raise KeyError(password)
        except KeyError as error:
            raise Refused("not accepted") from error  # the cause alone quotes it

    await pay.enqueue("hunter22")
    await drain(app)
    (record,) = [one for one in caplog.records if "Refused: not accepted" in one.getMessage()]
    text = logging.Formatter().format(record)
    assert "hunter22" not in text
    assert 'raise Refused("not accepted")' in text and "KeyError: '•••'" in text


async def test_an_error_that_no_log_can_take_is_logged_in_bounds(
    app: Rota, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(max_attempts=1)
    async def work(text: str, times: int) -> None:
        raise Refused(text * times + "\ud800")

    await work.enqueue("x", 1_000_000)
    await work.enqueue("short", 1)
    await drain(app)
    records = [one for one in caplog.records if "Refused: " in one.getMessage()]
    texts = [logging.Formatter().format(one) for one in records]
    assert len(texts) == 2
    assert all(len(text.encode()) < 50_000 for text in texts)
    assert "raise Refused(" in texts[1]
