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
"""

from __future__ import annotations

from .audit import AuditRules
from .claim import ClaimRules
from .counting import CountRules
from .documents import DocumentRules
from .edit import EditRules
from .firing import FiringRules
from .insert import InsertRules
from .keys import KeyRules
from .lease import LeaseRules
from .overview import OverviewRules
from .prune import PruneRules
from .race import RaceRules
from .reading import ReadRules
from .reclaim import ReclaimRules
from .schedules import ScheduleRules
from .settle import SettleRules

__all__ = ["StoreConformance"]


class StoreConformance(
    InsertRules,
    KeyRules,
    ClaimRules,
    LeaseRules,
    SettleRules,
    ReclaimRules,
    EditRules,
    ReadRules,
    PruneRules,
    DocumentRules,
    OverviewRules,
    CountRules,
    AuditRules,
    ScheduleRules,
    FiringRules,
    RaceRules,
):
    """Inherit from it in a class whose name begins with ``Test``."""
