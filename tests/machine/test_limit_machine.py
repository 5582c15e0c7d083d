"""Every store keeps limits, budgets and the order of tenants as the model does, under random calls."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from machine.limit_machine import LimitMachine
from machine.runs import check_examples, in_memory
from rota.store.protocol import Store


@pytest.mark.timeout(0)
def test_sqlite_keeps_limits_as_the_model() -> None:
    check_examples(in_memory, examples=50, steps=40, machine=LimitMachine)


@pytest.mark.timeout(0)
def test_postgres_keeps_limits_as_the_model(
    emptied_postgres: Callable[[], Coroutine[Any, Any, Store]],
) -> None:
    check_examples(emptied_postgres, examples=20, steps=35, machine=LimitMachine)
