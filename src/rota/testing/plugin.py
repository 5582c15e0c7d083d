"""The pytest plugin: fixtures for tests of applications. Loaded by pytest itself, never by rota.

Must never import the app before a fixture is used: every pytest run loads this module.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from .clock import FakeClock

if TYPE_CHECKING:
    from ..app import Rota

IN_MEMORY = "sqlite://:memory:"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("rota_app", "The app that the fixture rota_app gives to tests, such as shop.jobs:app.")
    parser.addini("rota_url", "The store on which the fixture rota_app runs it; by default SQLite in memory.")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "rule(number): checks this rule of the store protocol")


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock that moves only with ``advance(seconds)``."""
    return FakeClock()


@pytest.fixture
def rota_url(pytestconfig: pytest.Config) -> str:
    """The store of the fixture ``rota_app``: the option ``rota_url``, else SQLite in memory."""
    return str(pytestconfig.getini("rota_url") or IN_MEMORY)


@pytest.fixture
def rota_app(pytestconfig: pytest.Config, rota_url: str, fake_clock: FakeClock) -> Iterator[Rota]:
    """The app of the option ``rota_app``, on an empty store of the test's own, with ``fake_clock``."""
    from .app_stores import override, reset_sync

    reference = str(pytestconfig.getini("rota_app") or "")
    if not reference:
        raise pytest.UsageError(
            "the fixture rota_app needs the option rota_app in pytest's configuration, such as shop.jobs:app"
        )
    with override(pkgutil.resolve_name(reference), rota_url, clock=fake_clock) as app:
        if rota_url != IN_MEMORY:
            reset_sync(app)
        yield app
