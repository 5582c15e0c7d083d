"""Every store keeps every rule of the conformance suite."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("rota.testing.conformance")

from rota.testing.store_conformance import StoreConformance  # noqa: E402


class TestStores(StoreConformance):
    """The ``store`` fixture runs each test once per kind of store."""
