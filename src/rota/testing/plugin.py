"""The pytest plugin: fixtures for tests of applications. Loaded by pytest itself, never by rota."""

from __future__ import annotations

import pytest

from .clock import FakeClock


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "rule(number): checks this rule of the store protocol")


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock that moves only with ``advance(seconds)``."""
    return FakeClock()
