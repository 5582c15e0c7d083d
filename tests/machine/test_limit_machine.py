"""Every store keeps limits, budgets and the order of tenants as the model does, under random calls."""

from __future__ import annotations

import pytest

from machine.limit_machine import LimitMachine
from machine.runs import check_examples, in_memory


@pytest.mark.timeout(0)
def test_sqlite_keeps_limits_as_the_model() -> None:
    check_examples(in_memory, examples=50, steps=40, machine=LimitMachine)
