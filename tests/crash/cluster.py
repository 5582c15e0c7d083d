"""A store and the worker processes on it, for tests that kill and stop them.

Owns the processes it starts, and ends them all. Every wait polls and has a deadline.
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
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from run_log import Execution, RunLog

from rota import Rota
from rota.errors import RotaError
from rota.model import Attempt, Job, JobFilter, PageRequest, State
from rota.store.protocol import Store

T = TypeVar("T")
PROGRAM = Path(__file__).with_name("crash_app.py")
LONG = os.environ.get("ROTA_CRASH") == "long"
LEASE_S, SWEEP_S, POLL_S = 1.0, 0.3, 0.2
LONG_LEASE_S = 3.0  # for many processes on two cores: a worker that only waits for a core must not expire
RESCUE_S = LEASE_S + SWEEP_S + POLL_S
CHECK_S = 0.02
TIMEOUT_S = 30.0  # for waits whose duration is not under test


async def until(what: str, condition: Callable[[], bool], within: float = TIMEOUT_S) -> float:
    """Poll until the condition holds and return the seconds it took."""
    began = time.monotonic()

    async def read() -> bool:
        return condition()

    await poll(read, bool, within, lambda _: what)
    return time.monotonic() - began


async def poll(
    read: Callable[[], Awaitable[T]], is_done: Callable[[T], bool], within: float, what: Callable[[T], str]
) -> T:
    """Read until the value is as expected and return it; ``what`` describes the last one if it never is."""
    deadline = time.monotonic() + within
    while not is_done(found := await read()):
        assert time.monotonic() < deadline, f"not within {within:g} s: {what(found)}"
        await asyncio.sleep(CHECK_S)
    return found


class WorkerProcess:
    """One worker in its own process."""

    def __init__(
        self, url: str, run_log: RunLog, log: Path, options: dict[str, Any], env: dict[str, str]
    ) -> None:
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, str(PROGRAM), json.dumps(options)],
                env={**os.environ, **env, "CRASH_URL": url, "CRASH_RUN_LOG": str(run_log.path)},
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
        """The exit code; None while it runs."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self._process.wait()

    async def exit(self, within: float) -> float:
        """Wait until it exits by itself and return the seconds it took."""
        return await until(f"worker {self.pid} exits:\n{self.log}", lambda: self.code is not None, within)


class Cluster:
    """A store, a run log and the worker processes on them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.run_log = RunLog(folder / "run.log")
        self.app = Rota(url)
        self.workers: list[WorkerProcess] = []
        self.kills = 0

    async def close(self) -> None:
        for worker in self.workers:
            if worker.code is None:
                worker.kill()
        await self.app.close()
        self.run_log.close()

    # --- workers -----------------------------------------------------------------------------

    def start(
        self, *, url: str | None = None, env: dict[str, str] | None = None, **options: Any
    ) -> WorkerProcess:
        chosen = {"lease_s": LEASE_S, "sweep_s": SWEEP_S, "poll_s": POLL_S, "concurrency": 8, **options}
        log = self.folder / f"worker-{len(self.workers)}.log"
        worker = WorkerProcess(url or self.url, self.run_log, log, chosen, env or {})
        self.workers.append(worker)
        return worker

    async def ready(self, *workers: WorkerProcess) -> None:
        """Wait until these workers have started."""

        def is_ready() -> bool:
            for worker in workers:
                assert worker.code is None, f"worker {worker.pid} exited with {worker.code}:\n{worker.log}"
            return {worker.pid for worker in workers} <= {int(line[2]) for line in self.run_log.lines("W")}

        await until("workers start", is_ready)

    @property
    def alive(self) -> list[WorkerProcess]:
        return [worker for worker in self.workers if worker.code is None]

    @property
    def started(self) -> list[WorkerProcess]:
        """The running workers that have started to claim jobs."""
        started = {int(line[2]) for line in self.run_log.lines("W")}
        return [worker for worker in self.alive if worker.pid in started]

    def kill(self, worker: WorkerProcess) -> None:
        self.kills += 1
        worker.kill()

    def logs(self) -> str:
        return "\n".join(worker.log for worker in self.workers)

    def open_latch(self, latch: str) -> None:
        self.run_log.path.with_suffix(f".{latch}").touch()

    # --- jobs --------------------------------------------------------------------------------

    async def enqueue(self, task: str, n: int = 0, max_attempts: int = 100, **payload: Any) -> str:
        job = await self.app.enqueue(task, payload, max_attempts=max_attempts)
        self.run_log.write("A", job.id, n)
        return job.id

    async def produce(self, stop: asyncio.Event, pause: float, tasks: tuple[str, ...] = ("work",)) -> None:
        """Enqueue small jobs one after another until ``stop`` is set, and record each reply."""
        n = 0
        while not stop.is_set():
            n += 1
            try:
                await self.enqueue(tasks[n % len(tasks)], n, ms=n * 7 % 40)
            except RotaError:
                self.run_log.write("U", n)
            await asyncio.sleep(pause)

    def executions(self, job: str) -> list[Execution]:
        return [one for one in self.run_log.executions() if one.job == job]

    async def wait_started(self, job: str, times: int = 1, within: float = TIMEOUT_S) -> Execution:
        await until(f"execution {times} of {job} starts", lambda: len(self.executions(job)) >= times, within)
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

    async def scheduled(self) -> list[str]:
        """The jobs that schedules made."""
        return [job.id for job in (await self.jobs()).values() if job.schedule is not None]

    async def wait_finished(self, job: str, within: float = TIMEOUT_S) -> Job:
        return await poll(
            lambda: self.job(job),
            lambda found: found.is_final,
            within,
            lambda found: f"{found} has finished\n{self.logs()}",
        )

    # --- checking -----------------------------------------------------------------------------

    async def live_jobs(self, limit: int) -> Sequence[Job]:
        live = JobFilter(states=(State.WAITING, State.QUEUED, State.RUNNING))
        return (await (await self.store()).jobs(live, PageRequest(limit=limit))).items

    async def wait_until_idle(self, within: float) -> None:
        """Wait until no job is live."""
        await poll(
            lambda: self.live_jobs(1),
            lambda found: not found,
            within,
            lambda found: f"no live job, such as {found}\n{self.logs()}",
        )

    async def check_invariants(self, *, crashes: int = 0, concurrency: int = 8) -> None:
        """Compare the run log with the store: these invariants hold in every test."""
        jobs, acknowledged, executions = (
            await self.jobs(),
            self.run_log.acknowledged(),
            self.run_log.executions(),
        )
        unknown = len(self.run_log.lines("U"))
        assert acknowledged, "nothing was enqueued: the run proves nothing"
        assert not acknowledged - jobs.keys(), "acknowledged jobs are lost"
        assert len(jobs.keys() - acknowledged) <= unknown, "there are jobs that were never enqueued"
        unfinished = {job.id: job.state for job in jobs.values() if job.state is not State.SUCCEEDED}
        assert not unfinished, f"jobs have not succeeded: {unfinished}"
        twice = [
            job for job, times in Counter(job for job, _ in self.run_log.accepted()).items() if times > 1
        ]
        assert not twice, f"settled twice: {twice}"
        times = Counter(one.job for one in executions)
        assert not jobs.keys() - times.keys(), "jobs succeeded without having been run"
        assert max(times.values()) <= 1 + crashes, f"executed too often: {times.most_common(3)}"
        assert len(executions) - len(jobs) <= crashes * concurrency, "more jobs were run again than were held"
        assert not (found := overlaps(executions)), f"overlapping executions under one lease: {found}"


def overlaps(executions: list[Execution]) -> list[tuple[Execution, Execution]]:
    """Executions of one job at the same time, without a rescue between their claims.

    A claim increases the lease token by one; a rescue, possible only when the lease has expired, by one
    more. So a difference of one means that the earlier execution still held its lease.
    """
    by_job: dict[str, list[Execution]] = defaultdict(list)
    for one in executions:
        by_job[one.job].append(one)
    found = []
    for same in by_job.values():
        same.sort(key=lambda one: one.token)
        for first, second in pairwise(same):
            overlaps_next = first.ended is not None and second.began < first.ended
            if first.token == second.token or (overlaps_next and second.token - first.token < 2):
                found.append((first, second))
    return found
