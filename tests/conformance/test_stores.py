"""Every store keeps every rule of the conformance suite."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("rota.testing.conformance")

from rota.testing.conformance.fairness import BudgetRules, FairnessRules, HeldLaneRules  # noqa: E402
from rota.testing.conformance.limits import LimitOrderRules, RunningLimitRules  # noqa: E402
from rota.testing.conformance.rates import RateRules  # noqa: E402
from rota.testing.store_conformance import StoreConformance  # noqa: E402

# What PostgreSQL's claims do not do yet: take a set out as soon as it passes.
POSTGRES_LACKS: tuple[type, ...] = (
    RunningLimitRules,
    LimitOrderRules,
    RateRules,
    FairnessRules,
    HeldLaneRules,
    BudgetRules,
)


@pytest.fixture(autouse=True)
def lacking(request: pytest.FixtureRequest) -> None:
    name = request.node.originalname
    if "postgres" in request.node.name and any(name in vars(rules) for rules in POSTGRES_LACKS):
        pytest.skip("PostgreSQL does not do this yet")


class TestStores(StoreConformance):
    """The ``store`` fixture runs each test once per kind of store."""
