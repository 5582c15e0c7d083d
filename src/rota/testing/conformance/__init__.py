"""The suite that every store must pass: one class, one fixture, one test for each rule.

Owns: the meaning of ``store/protocol.py`` in executable form. Must never reach behind the verbs: what
only one store has is tested elsewhere. Every instant is given; nothing sleeps.

For the author of a store, with pytest-asyncio in auto mode::

    from rota.testing.store_conformance import StoreConformance

    @pytest.fixture
    async def store():
        store = MyStore(...)
        await store.schema.migrate()
        await store.open()
        yield store
        await store.close()

    class TestMyStore(StoreConformance):
        pass

The fixture must yield an empty store for every test.

``StoreCrashConformance`` has the rules that need more than one process: durability, atomicity at every step,
wake-ups between processes, transactions of the caller, outages. It takes a second fixture, ``host``, which is
a ``StoreHost`` on the same data as ``store``. A store is safe to use when it keeps both sets.
"""

from __future__ import annotations

from .atomicity import AtomicityRules
from .audit import AuditRules
from .claim import ClaimRules
from .counts import CountRules
from .documents import DocumentRules
from .durability import DurabilityRules
from .edit import EditRules
from .expenses import SpendingRules
from .expiry import ExpiryRules
from .fairness import BudgetRules, FairnessRules, HeldLaneRules
from .firing import FiringRules
from .host import StoreHost
from .insert import InsertRules
from .kept_keys import KeptKeyRules
from .keys import KeyRules
from .lease import LeaseRules
from .limits import LimitOrderRules, RunningLimitRules
from .outage import OutageRules
from .overview import OverviewRules
from .processes import LoopRules, ProcessRules
from .prune import PruneRules
from .put_rules import PutRulesRules
from .race import RaceRules
from .rates import RateRules
from .reads import ReadRules
from .reclaim import ReclaimRules
from .run_counts import RunCountRules
from .schedules import ScheduleRules
from .settle import SettleRules
from .time import TimeRules
from .transactions import ConnectionRules, ScheduleTransactionRules, TransactionRules
from .wakeups import WakeUpRules, WakeUpsBetweenProcessesRules

__all__ = ["StoreConformance", "StoreCrashConformance", "StoreHost"]


class StoreConformance(
    InsertRules,
    KeyRules,
    KeptKeyRules,
    ClaimRules,
    RunningLimitRules,
    LimitOrderRules,
    RateRules,
    FairnessRules,
    HeldLaneRules,
    BudgetRules,
    SpendingRules,
    LeaseRules,
    SettleRules,
    ReclaimRules,
    EditRules,
    ReadRules,
    PruneRules,
    DocumentRules,
    PutRulesRules,
    OverviewRules,
    CountRules,
    RunCountRules,
    AuditRules,
    ScheduleRules,
    ExpiryRules,
    FiringRules,
    RaceRules,
    TimeRules,
    LoopRules,
    ConnectionRules,
    WakeUpRules,
):
    """The rules for one process. Inherit from it in a class whose name begins with ``Test``."""


class StoreCrashConformance(
    DurabilityRules,
    AtomicityRules,
    ProcessRules,
    WakeUpsBetweenProcessesRules,
    TransactionRules,
    ScheduleTransactionRules,
    OutageRules,
):
    """The rules for several processes, some of them killed. Needs the fixtures ``store`` and ``host``."""
