"""Worker processes to be killed, stopped and judged.

Owns the processes it starts, and ends them all. Waits only by looking, with a deadline.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from ledger import Execution, Ledger

from rota import Rota
from rota.errors import RotaError
from rota.model import Attempt, Job, JobFilter, PageRequest, State
from rota.store.protocol import Store

PROGRAM = Path(__file__).with_name("crash_app.py")
LONG = os.environ.get("ROTA_CRASH") == "long"
LEASE_S, SWEEP_S, POLL_S = 1.0, 0.3, 0.2
LOADED_LEASE_S = 3.0  # where many processes share two processors: a worker that merely waits for one lives
RECOVERY_S = LEASE_S + SWEEP_S + POLL_S
LOOK_S = 0.02
PATIENCE_S = 30.0  # for what has no bound of its own to prove


async def until(what: str, is_so: Callable[[], bool], within: float = PATIENCE_S) -> float:
    """Look until it is so; the seconds it took."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > within:
            raise AssertionError(f"not within {within:g} s: {what}")
        await asyncio.sleep(LOOK_S)
    return time.monotonic() - began


class WorkerProcess:
    """One worker in a process of its own."""

    def __init__(
        self, url: str, ledger: Ledger, log: Path, options: dict[str, Any], env: dict[str, str]
    ) -> None:
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, str(PROGRAM), json.dumps(options)],
                env={**os.environ, **env, "CRASH_URL": url, "CRASH_LEDGER": str(ledger.path)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def code(self) -> int | None:
        """The exit code; None while it lives."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self._process.wait()

    async def exit(self, within: float) -> float:
        """Wait for it to end by itself; the seconds it took."""
        return await until(f"worker {self.pid} exits:\n{self.log}", lambda: self.code is not None, within)


class Site:
    """A store, a ledger, and the workers on them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.ledger = Ledger(folder / "ledger.txt")
        self.app = Rota(url)
        self.workers: list[WorkerProcess] = []
        self.kills = 0

    async def close(self) -> None:
        for worker in self.workers:
            if worker.code is None:
                worker.kill()
        await self.app.close()
        self.ledger.close()

    # --- workers -----------------------------------------------------------------------------

    def start(
        self, *, url: str | None = None, env: dict[str, str] | None = None, **options: Any
    ) -> WorkerProcess:
        chosen = {"lease_s": LEASE_S, "sweep_s": SWEEP_S, "poll_s": POLL_S, "concurrency": 8, **options}
        log = self.folder / f"worker-{len(self.workers)}.log"
        worker = WorkerProcess(url or self.url, self.ledger, log, chosen, env or {})
        self.workers.append(worker)
        return worker

    async def ready(self, *workers: WorkerProcess) -> None:
        """Until these have begun to work."""

        def is_ready() -> bool:
            for worker in workers:
                assert worker.code is None, f"worker {worker.pid} exited with {worker.code}:\n{worker.log}"
            return {worker.pid for worker in workers} <= {int(line[2]) for line in self.ledger.lines("W")}

        await until("workers start", is_ready)

    @property
    def living(self) -> list[WorkerProcess]:
        return [worker for worker in self.workers if worker.code is None]

    @property
    def working(self) -> list[WorkerProcess]:
        """Those that have begun to work and live."""
        begun = {int(line[2]) for line in self.ledger.lines("W")}
        return [worker for worker in self.living if worker.pid in begun]

    def kill(self, worker: WorkerProcess) -> None:
        self.kills += 1
        worker.kill()

    def logs(self) -> str:
        return "\n".join(worker.log for worker in self.workers)

    def open_gate(self, gate: str) -> None:
        self.ledger.path.with_suffix(f".{gate}").touch()

    # --- jobs --------------------------------------------------------------------------------

    async def enqueue(self, task: str, n: int = 0, max_attempts: int = 100, **payload: Any) -> str:
        job = await self.app.enqueue(task, payload, max_attempts=max_attempts)
        self.ledger.write("A", job.id, n)
        return job.id

    async def produce(self, stop: asyncio.Event, pause: float, tasks: tuple[str, ...] = ("work",)) -> None:
        """Enqueue small jobs, one after another, until told to stop; note each answer."""
        n = 0
        while not stop.is_set():
            n += 1
            try:
                await self.enqueue(tasks[n % len(tasks)], n, ms=n * 7 % 40)
            except RotaError:
                self.ledger.write("U", n)
            await asyncio.sleep(pause)

    def executions(self, job: str) -> list[Execution]:
        return [one for one in self.ledger.executions() if one.job == job]

    async def begun(self, job: str, times: int = 1, within: float = PATIENCE_S) -> Execution:
        await until(f"execution {times} of {job} begins", lambda: len(self.executions(job)) >= times, within)
        return self.executions(job)[times - 1]

    async def store(self) -> Store:
        return await self.app.stores.get()

    async def job(self, job: str) -> Job:
        page = await (await self.store()).jobs(JobFilter(ids=(job,)), PageRequest(limit=1))
        return page.items[0]

    async def attempts(self, job: str) -> list[Attempt]:
        return list(await (await self.store()).attempts(job))

    async def jobs(self) -> dict[str, Job]:
        """Every job in the store."""
        store, found, cursor = await self.store(), {}, None
        while True:
            page = await store.jobs(JobFilter(), PageRequest(limit=500, cursor=cursor))
            found.update({job.id: job for job in page.items})
            if (cursor := page.next) is None:
                return found

    async def ends(self, job: str, within: float = PATIENCE_S) -> Job:
        deadline = time.monotonic() + within
        while not (found := await self.job(job)).is_final:
            assert time.monotonic() < deadline, f"{found} has not ended within {within:g} s\n{self.logs()}"
            await asyncio.sleep(LOOK_S)
        return found

    # --- judging -----------------------------------------------------------------------------

    async def quiet(self, within: float) -> float:
        """Wait until no job is queued or running; the seconds it took."""
        began = time.monotonic()
        live = JobFilter(states=(State.WAITING, State.QUEUED, State.RUNNING))
        while found := (await (await self.store()).jobs(live, PageRequest(limit=1))).items:
            assert time.monotonic() - began < within, f"not quiet within {within:g} s: {found}\n{self.logs()}"
            await asyncio.sleep(LOOK_S)
        return time.monotonic() - began

    async def judge(self, *, crashes: int = 0, concurrency: int = 8) -> None:
        """Hold the ledger against the store: the invariants of every run, whatever was done to it."""
        jobs, acked, executions = await self.jobs(), self.ledger.acked(), self.ledger.executions()
        unknown = len(self.ledger.lines("U"))
        assert acked, "nothing was enqueued: the run proves nothing"
        assert not acked - jobs.keys(), "acknowledged jobs are lost"
        assert len(jobs.keys() - acked) <= unknown, "there are jobs that nobody enqueued"
        unfinished = {job.id: job.state for job in jobs.values() if job.state is not State.SUCCEEDED}
        assert not unfinished, f"jobs have not succeeded: {unfinished}"
        twice = [job for job, times in Counter(job for job, _ in self.ledger.accepted()).items() if times > 1]
        assert not twice, f"settled twice: {twice}"
        times = Counter(one.job for one in executions)
        assert not jobs.keys() - times.keys(), "jobs succeeded without having been run"
        assert max(times.values()) <= 1 + crashes, f"executed too often: {times.most_common(3)}"
        assert len(executions) - len(jobs) <= crashes * concurrency, "more jobs were run again than were held"
        assert not (found := overlaps(executions)), f"overlapping executions under one lease: {found}"


def overlaps(executions: list[Execution]) -> list[tuple[Execution, Execution]]:
    """Executions of one job at the same time, without a rescue between their claims.

    A claim raises the token by one and a rescue, possible only when the lease has expired, by one
    more: so a step of one between two executions means that the earlier was still in its right.
    """
    by_job: dict[str, list[Execution]] = defaultdict(list)
    for one in executions:
        by_job[one.job].append(one)
    found = []
    for same in by_job.values():
        same.sort(key=lambda one: one.token)
        for first, second in pairwise(same):
            runs_on = first.ended is not None and second.began < first.ended
            if first.token == second.token or (runs_on and second.token - first.token < 2):
                found.append((first, second))
    return found
