"""Jobs that harm the process they run in: their neighbours finish, and the worker lives."""

from __future__ import annotations

from attack import Site

from rota.model import State


async def test_poison_jobs_harm_nobody_else(sqlite_site: Site) -> None:
    site = sqlite_site
    worker = site.start()
    exits = await site.enqueue("exits", max_attempts=2)
    segfaults = await site.enqueue("segfaults", max_attempts=2)
    spins = await site.enqueue("spins_process", max_attempts=1)
    neighbours = [await site.enqueue(task, ms=20) for task in ("work", "work_thread", "work_process") * 5]
    for job, kind, said in (
        (exits, "ProcessDied", "code 3"),
        (segfaults, "ProcessDied", "SIGSEGV"),
        (spins, "Timeout", "0.5 s"),
    ):
        ended = await site.ends(job)
        assert (ended.state, ended.error["type"].rpartition(".")[2]) == (State.FAILED, kind)
        assert said in ended.error["message"]
    for job in neighbours:
        assert (await site.ends(job)).state is State.SUCCEEDED
        assert len(site.executions(job)) == 1
    assert len(site.executions(exits)) == len(site.executions(segfaults)) == 2
    assert worker.code is None, worker.log


async def test_an_endless_loop_in_a_thread_is_ended_by_its_timeout(sqlite_site: Site) -> None:
    site = sqlite_site
    worker = site.start(concurrency=2)
    spins = await site.enqueue("spins_thread", max_attempts=1)
    neighbours = [await site.enqueue("work", ms=20) for _ in range(5)]
    for job in neighbours:
        assert (await site.ends(job)).state is State.SUCCEEDED
    ended = await site.ends(spins, within=10)
    assert (ended.state, ended.error["type"]) == (State.FAILED, "Timeout")
    after = [await site.enqueue("work_thread", ms=20) for _ in range(4)]
    for job in after:
        assert (await site.ends(job)).state is State.SUCCEEDED
    assert "ignored the stop request" not in worker.log  # its slot is free again
    assert worker.code is None, worker.log
