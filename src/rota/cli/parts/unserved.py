"""Due jobs of tasks that no running worker has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ...core.plurals import plural
from ...model import State
from ...operate import Operations
from ...operate.requests import MOST, JobsRequest
from ...terminal.text import safe
from .target import store_time


async def unserved_tasks(operations: Operations) -> Mapping[str, int]:
    """Tasks that no running worker has, with the number among the oldest due jobs."""
    if "read.shared" not in (await operations.system.me()).permissions:  # a token limited to one tenant
        return {}
    workers = (await operations.system.workers()).items
    known = {task for worker in workers if worker.state != "lost" for task in worker.tasks}
    page = await operations.jobs.list(JobsRequest(state=(State.QUEUED,), order="oldest", limit=MOST))
    now = await store_time(operations)
    return Counter(job.task for job in page.items if job.run_at <= now and job.task not in known)


def unserved_lines(unserved: Mapping[str, int]) -> list[str]:
    return [
        f"no running worker has task {safe(task)}: at least {plural(count, 'due job')} cannot start"
        for task, count in sorted(unserved.items())
    ]
