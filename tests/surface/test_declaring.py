"""Which functions can be tasks, and what is said about those that cannot: when they are declared."""

from __future__ import annotations

import functools

import pytest

from rota import ConfigError, Rota, TaskSet
from rota.testing import drain


class Mailer:
    def __init__(self, domain: str) -> None:
        self.domain = domain

    def send(self, order_id: int) -> str:
        return f"{order_id}@{self.domain}"

    @staticmethod
    def render(order_id: int) -> int:
        return order_id


def test_a_lambda_needs_a_name(lite: Rota) -> None:
    with pytest.raises(
        ConfigError, match=r"a lambda has no name of its own; give it one: app\.task\(name=…\)"
    ):
        lite.task(lambda n: n)
    with pytest.raises(ConfigError, match="a lambda has no name"):
        TaskSet("mail").task(lambda n: n)
    assert lite.task(name="same")(lambda n: n).name == "same"


def test_a_method_is_refused_with_the_way(lite: Rota) -> None:
    with pytest.raises(ConfigError, match=r"'send': Mailer\.send is a method.*app\.task\(object\.method\)"):
        lite.task(Mailer.send)
    assert lite.registry.names == ()


async def test_a_method_of_an_object_is_a_task(lite: Rota) -> None:
    send = lite.task(Mailer("shop.example").send)
    job = await send.enqueue(order_id=1)
    await drain(lite)
    assert await job.result(1) == "1@shop.example"


def test_a_process_task_that_cannot_be_imported_is_refused(lite: Rota) -> None:
    def nested() -> None: ...

    process = lite.task(executor="process", name="work")
    for wrong in (nested, lambda: None, Mailer("x").send, functools.partial(Mailer.render, 1)):
        with pytest.raises(
            ConfigError, match=r"'work' runs in a process, which imports it by name.* top level"
        ):
            process(wrong)
    assert process(Mailer.render).executor == "process"
