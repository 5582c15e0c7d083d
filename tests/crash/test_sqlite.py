"""Many processes on one SQLite file."""

from __future__ import annotations

import pytest
from attack import LONG, Site, until

PROCESSES = 8
EACH = 1000 if LONG else 100


@pytest.mark.timeout(600)
async def test_eight_processes_share_one_file(sqlite_site: Site) -> None:
    site = sqlite_site
    for _ in range(PROCESSES):
        site.start(produce=EACH, lease_s=15.0, concurrency=4)
    await until("all have enqueued", lambda: len(site.ledger.lines("P")) == PROCESSES, within=300)
    await site.quiet(within=60)
    await site.judge(crashes=0)
    assert len(site.ledger.acked()) == PROCESSES * EACH
    assert len(site.living) == PROCESSES
    assert "locked" not in site.logs()
    assert "Traceback" not in site.logs()
