"""Seals the audit log: puts entries that have no seal yet under the next link of its hash chain.

Any number of workers may do so at once: of several that seal the same entries, one succeeds. Writers never
wait: they add plain rows, and an entry whose transaction commits late is sealed later.
"""

from __future__ import annotations

import logging

from ..core.audit_chain import head_text, sealed
from ..model import AuditChainEnds, AuditFilter, AuditSeal, PageRequest
from ..runtime.clock import Clock
from ..store.protocol import Store

log = logging.getLogger("rota.audit")

SEAL_EVERY_S = 60.0
MOST_SEAL_S = 300.0
SEAL_BATCH = 500


async def seal(store: Store, clock: Clock) -> AuditSeal | None:
    """Seal a batch; None if there is nothing to seal, or another worker was quicker."""
    oldest = PageRequest(limit=SEAL_BATCH, newest_first=False)
    entries = (await store.audit(AuditFilter(seal=0), oldest)).items
    if not entries:
        return None
    made = sealed((await store.survey(AuditChainEnds(1))).head, entries, clock.now())
    if not await store.seal_audit(made, [entry.id for entry in entries]):
        return None
    # Anyone who can rewrite the store can rewrite the chain, but not the logs that went elsewhere.
    log.info("sealed %d audit entries, head %s", made.entries, head_text(made))
    return made
