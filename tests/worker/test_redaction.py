"""Secrets of a payload are redacted before anything is stored: errors, logs, progress, reasons."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import pytest

from rota import Cancel, Context, Rota, operate
from rota.testing import drain

CANARY = "canary-7f3a"


async def everything_stored(app: Rota, job: Any) -> str:
    """Everything that is stored about a job but its payload and output."""
    found = await job.refresh()
    attempts = await operate.attempts(await app.stores.get(), found)
    texts = [found.error_json, found.progress_json]
    texts += [text for attempt in attempts for text in (attempt.error_json, attempt.logs_json)]
    return "\n".join(text for text in texts if text)


@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_a_secret_is_struck_out_of_error_traceback_logs_and_progress(app: Rota, executor: str) -> None:
    def speak(ctx: Context, api_key: str) -> None:
        ctx.progress(10, f"with {api_key}")
        ctx.log(f"with {api_key}")
        logging.getLogger("shop").warning("with %r", api_key)
        try:
            raise KeyError(api_key)
        except KeyError as error:
            raise ValueError(f"{{'api_key': {api_key!r}}}") from error

    async def on_the_loop(ctx: Context, api_key: str) -> None:
        speak(ctx, api_key)

    app.task(name="speak")(on_the_loop if executor == "async" else speak)
    job = await app.enqueue("speak", {"api_key": CANARY})
    await drain(app)
    text = await everything_stored(app, job)
    assert "canary" not in text
    assert text.count("•••") >= 6
    assert "KeyError" in text and "ValueError" in text


async def test_a_truncated_secret_leaves_no_prefix(app: Rota) -> None:
    @app.task
    async def speak(ctx: Context, password: str) -> None:
        ctx.log("x" * 1995 + password)
        raise ValueError("x" * 3995 + password)

    job = await speak.enqueue(CANARY)
    await drain(app)
    assert "cana" not in await everything_stored(app, job)


async def test_a_secret_is_struck_out_of_a_reason_to_cancel(app: Rota) -> None:
    @app.task
    async def speak(password: str) -> None:
        raise Cancel(f"{password} is wrong")

    job = await speak.enqueue(CANARY)
    await drain(app)
    assert (await job.refresh()).error["message"] == "••• is wrong"


async def test_a_secret_in_a_nested_argument_is_struck_out(app: Rota) -> None:
    @dataclass
    class Login:
        user: str
        password: str

    @app.task
    async def speak(login: Login) -> None:
        raise PermissionError(f"{login}")

    job = await speak.enqueue(Login("ada", CANARY))
    await drain(app)
    text = await everything_stored(app, job)
    assert "canary" not in text and "ada" in text


async def test_an_exception_named_after_a_secret_is_redacted(app: Rota) -> None:
    @app.task
    async def speak(token: str) -> None:
        raise type(token, (Exception,), {})("bad")

    job = await speak.enqueue("CanaryBird")
    await drain(app)
    assert "CanaryBird" not in await everything_stored(app, job)


async def test_which_fields_are_secret_can_be_set(clock: Any) -> None:
    app = Rota("sqlite://:memory:", clock=clock, secret_fields=("pet",))
    try:

        @app.task
        async def speak(pet: str, password: str) -> None:
            raise ValueError(f"{pet} {password}")

        job = await speak.enqueue("rex the dog", "hunter2")
        await drain(app)
        assert (await job.refresh()).error["message"] == "••• hunter2"
    finally:
        await app.close()
