"""How a machine is run: a few fixed examples, or with ``ROTA_MACHINE=long`` many different ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from machine.store_machine import StoreMachine
from rota.store.open import open_store
from rota.store.protocol import Store

LONG = os.environ.get("ROTA_MACHINE") == "long"


def check_examples(
    make: Callable[[], Coroutine[Any, Any, Store]],
    examples: int,
    steps: int,
    machine: type[StoreMachine] = StoreMachine,
) -> None:
    run_state_machine_as_test(
        lambda: machine(make),
        settings=settings(
            max_examples=1000 if LONG else examples,
            stateful_step_count=200 if LONG else steps,
            derandomize=not LONG,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )


async def in_memory() -> Store:
    store = open_store("sqlite://:memory:")
    await store.schema.migrate()
    await store.open()
    return store
