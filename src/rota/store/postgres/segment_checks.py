"""Segments of due jobs: what is left to do beside claims. See ``functions/segments.sql``.

Owns when this process checks that no job lies where claims do not look, and helps claims that the server
cancels. Must never delay or fail the rescue of jobs, which calls it.
"""

from __future__ import annotations

import asyncio
import logging

import psycopg

from ...errors import StoreError
from .connections import Connections

log = logging.getLogger("rota.store")

CHECK_EVERY_S = 60.0
LIMIT = b"SET LOCAL statement_timeout = '30s'"  # what the URL or the role says is meant for short statements
ROUNDS = 4  # of tidying, until a segment with too many dead entries is left behind


class SegmentChecks:
    """The checks of one store object. Called with every sweep for lost leases."""

    def __init__(self, connections: Connections, shown: str) -> None:
        self._connections = connections
        self._shown = shown
        self._check_at = float("-inf")
        self._rounds = 0

    def on_failed_turn(self, error: BaseException) -> None:
        """Note that the server cancelled a claim: perhaps it met too many dead entries."""
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            self._rounds = ROUNDS

    async def check(self) -> None:
        now = asyncio.get_running_loop().time()
        try:
            if self._rounds:
                self._rounds -= 1
                await self._run(b"SELECT rota.tidy_alone()")
            if now >= self._check_at:
                self._check_at = now + CHECK_EVERY_S
                ((is_due,),) = await self._connections.rows("SELECT rota.is_check_due()", repeatable=False)
                if is_due:
                    await self._run(b"SELECT rota.check_segments()")
        except (psycopg.Error, StoreError) as error:
            log.warning("%s: the segments of due jobs were not checked: %s", self._shown, error)

    async def _run(self, statement: bytes) -> None:
        async with self._connections.borrow("retention") as connection, connection.transaction():
            await connection.execute(LIMIT)
            await connection.execute(statement)
