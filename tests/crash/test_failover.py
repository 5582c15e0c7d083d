"""Two real servers: the primary dies or stops answering, and its standby is promoted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cluster import LONG, TIMEOUT_S, Cluster, poll, until
from patience import ENV, shorten

from proxy import Proxy
from rota.errors import RotaError
from rota.model import State
from servers import REPLICATED, Postgres

WORKERS = 2
CALLERS = 4
STANDBY = "rota_standby"
PATIENCE_S = 10.0 if LONG else 2.0
LEASE_S = 10.0 if LONG else 5.0
LAG_S = 5.0 if LONG else 1.0


class Pair:
    """A primary and its standby, and what programs on them do."""

    def __init__(self, primary: Postgres, standby: Postgres, network: Proxy, cluster: Cluster) -> None:
        self.primary, self.standby, self.cluster = primary, standby, cluster
        self.network = network  # between the two
        self.acknowledged: dict[str, float] = {}  # job: when
        self._stop = asyncio.Event()

    async def start_load(self) -> None:
        workers = [
            self.cluster.start(lease_s=LEASE_S, env={ENV: str(PATIENCE_S)}, tick_s=0.5)
            for _ in range(WORKERS)
        ]
        await self.cluster.ready(*workers)
        self._callers = [asyncio.create_task(self._produce(n)) for n in range(CALLERS)]
        await until("jobs flow", lambda: len(self.cluster.run_log.lines("E")) > (1000 if LONG else 50))

    async def stop_load(self) -> None:
        self._stop.set()
        async with asyncio.timeout(TIMEOUT_S):  # every caller is answered or told
            await asyncio.gather(*self._callers)
        shorten(TIMEOUT_S)  # the checks may take their time; the fixture undoes it

    async def _produce(self, caller: int) -> None:
        while not self._stop.is_set():
            try:
                job = await self.cluster.enqueue("work", caller, ms=10)
            except RotaError:
                self.cluster.run_log.write("U", caller)
            else:
                self.acknowledged[job] = time.time()
            await asyncio.sleep(0.02)

    async def check_flow(self, since: float) -> None:
        """Jobs are acknowledged and end again; how soon is printed."""
        begun = time.time()
        await until("acknowledged again", lambda: max(self.acknowledged.values()) > begun)
        first_ack = min(t for t in self.acknowledged.values() if t > begun)
        known = set(self.acknowledged)
        await until("new jobs end", lambda: self._has_new_end(known))
        print(
            f"after the promotion: first ack {first_ack - since:.2f} s, "
            f"new jobs end {time.time() - since:.2f} s"
        )

    def _has_new_end(self, known: set[str]) -> bool:
        return any(fields[1] not in known for fields in self.cluster.run_log.lines("E")[-20:])


@asynccontextmanager
async def replicated(tmp_path: Path, *, synchronous: bool) -> AsyncIterator[Pair]:
    with Postgres(settings=REPLICATED) as primary:
        async with Proxy(primary.port) as network:
            primary.create_database("shop")
            with await asyncio.to_thread(primary.make_standby, STANDBY, network.port) as standby:
                if synchronous:
                    primary.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'")
                    primary.execute("SELECT pg_reload_conf()")
                await until_following(primary, "sync" if synchronous else "async")
                hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
                url = f"postgresql://rota@{hosts}/shop?target_session_attrs=read-write&connect_timeout=2"
                cluster = Cluster(url, tmp_path)
                try:
                    await cluster.app.migrate()
                    yield Pair(primary, standby, network, cluster)
                finally:
                    await cluster.close()


async def until_following(primary: Postgres, wanted: str) -> None:
    def state() -> str | None:
        rows = primary.execute("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'")
        return rows[0][0] if rows else None

    async def read() -> str | None:
        return await asyncio.to_thread(state)

    await poll(read, lambda now: now == wanted, TIMEOUT_S, lambda now: f"the standby is {now}")


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(PATIENCE_S, monkeypatch.setattr)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", [Postgres.kill, Postgres.stall], ids=lambda fault: fault.__name__)
async def test_synchronous_standby_takes_over_without_loss(
    tmp_path: Path, fault: Callable[[Postgres], None]
) -> None:
    async with replicated(tmp_path, synchronous=True) as pair:
        cluster = pair.cluster
        await pair.start_load()
        await asyncio.to_thread(fault, pair.primary)
        await asyncio.to_thread(pair.standby.promote)
        await pair.check_flow(since=time.time())
        await pair.stop_load()
        await cluster.wait_until_idle(within=LEASE_S + TIMEOUT_S)
        await cluster.check_invariants(crashes=1, concurrency=8 * WORKERS)
        print(f"{len(pair.acknowledged)} acknowledged, {len(cluster.run_log.lines('U'))} told")
        assert all(worker.code is None for worker in cluster.workers), cluster.logs()


@pytest.mark.timeout(300)
@pytest.mark.skipif(not LONG, reason="measures what asynchronous replication loses: make crash")
async def test_asynchronous_standby_loses_no_more_than_it_lagged(tmp_path: Path) -> None:
    """What it had not received is gone, acknowledged or not; everything before is there, and ends once."""
    async with replicated(tmp_path, synchronous=False) as pair:
        cluster = pair.cluster
        await pair.start_load()
        lagging = time.time()
        pair.network.stall()
        await asyncio.sleep(LAG_S)  # the lag itself
        await asyncio.to_thread(pair.primary.kill)
        pair.network.freeze()
        await asyncio.to_thread(pair.standby.promote)
        await pair.check_flow(since=time.time())
        await pair.stop_load()
        await cluster.wait_until_idle(within=LEASE_S + TIMEOUT_S)
        jobs = await cluster.jobs()
        lost = pair.acknowledged.keys() - jobs.keys()
        executions = cluster.run_log.executions()
        never = lost - {one.job for one in executions}
        again = len([one for one in executions if one.job in jobs]) - len(jobs)
        print(
            f"{len(pair.acknowledged)} acknowledged, {len(lost)} of them gone with {LAG_S:g} s of lag, "
            f"{len(never)} never run, {again} executions repeated"
        )
        assert lost, "nothing was lost: the test proves nothing"
        assert min(pair.acknowledged[job] for job in lost) > lagging - 1
        assert {job.state for job in jobs.values()} == {State.SUCCEEDED}
