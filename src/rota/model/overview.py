"""Counts of jobs by state, queue and minute, and the questions a store answers with them.

A question is a value whose type says what its answer is: ``await store.survey(JobCount(where, 100))``
is an ``int``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Generic, TypeVar

from .audit import AuditChain, AuditSeal
from .job import Job, JobFilter
from .value import Value

KEPT_RUN_DAYS = 400  # how long a store keeps the counts of runs, at least

Answer = TypeVar("Answer")  # of a call
Answer_co = TypeVar("Answer_co", covariant=True)  # of a question


class QueueDepth(Value, frozen=True, kw_only=True):
    due: int = 0
    due_later: int = 0
    running: int = 0
    oldest_due_s: float | None = None


class Overview(Value, frozen=True, kw_only=True):
    """Counts of now. ``estimated`` names the counts that are not exact."""

    counts: Mapping[str, int]  # by state; every state has an entry
    oldest_due_s: float | None
    queues: Mapping[str, QueueDepth]
    estimated: frozenset[str] = frozenset()


class ActivityCount(Value, frozen=True, kw_only=True):
    """How many jobs of a task ended in a state within a minute; older ones by the hour or the day."""

    at: datetime  # when the minute began
    queue: str
    task: str
    state: str  # succeeded, failed, cancelled; removed: succeeded and deleted itself
    n: int


class Question(Value, Generic[Answer_co], frozen=True, kw_only=False):
    """What ``Store.survey`` answers with an ``Answer_co``."""


class JobCount(Question[int], frozen=True, kw_only=False):
    """How many jobs match the filter, at most ``most``."""

    where: JobFilter
    most: int


class JobsAhead(Question[int], frozen=True, kw_only=False):
    """Due jobs of the same queue that a claim takes before this one, at most ``most``."""

    job: Job
    most: int


class DepthByTenant(Question[Mapping[str, QueueDepth]], frozen=True, kw_only=False):
    """Live jobs by tenant, counted from at most ``most`` of them, the oldest first."""

    now: datetime
    most: int


class ActivityBetween(Question[Sequence[ActivityCount]], frozen=True, kw_only=False):
    """How many jobs ended how, in the minutes that began within [since, until)."""

    since: datetime
    until: datetime


class CurrentOverview(Question[Overview], frozen=True, kw_only=False):
    """Counts of now; of one tenant from a bounded number of jobs, and then marked as estimated."""

    now: datetime
    tenant: str | None = None


class ExpiredJobs(Question[Sequence[Job]], frozen=True, kw_only=False):
    """Queued jobs whose ``expires_at`` is not later than ``now``, the first to expire first."""

    now: datetime
    most: int


class DueLane(Value, frozen=True, kw_only=True):
    """Due jobs of one task in one queue, among those that were read."""

    queue: str
    task: str
    due: int


class DueLanes(Question[Sequence[DueLane]], frozen=True, kw_only=False):
    """Which tasks have due jobs in which queues, from the ``most`` oldest queued and as many due jobs."""

    now: datetime
    most: int


class LastRuns(Question[Sequence[Job]], frozen=True, kw_only=False):
    """The newest job of each (tenant, schedule name) pair that has one, in any order."""

    schedules: Sequence[tuple[str, str]]


class RunCount(Value, frozen=True, kw_only=True):
    """How the runs of a schedule ended within some days. Durations are of those whose code began.

    Counted when a run ends, and kept whatever becomes of its job. A retry takes the outcome back, not the
    duration: of a run that was retried, the last outcome counts.
    """

    tenant: str
    schedule: str
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    timed: int = 0  # runs with a duration
    total_ms: float = 0.0
    longest_ms: float = 0.0


class RunCounts(Question[Sequence[RunCount]], frozen=True, kw_only=False):
    """The counts of each (tenant, schedule name) pair that has any, of the UTC days from ``since`` on."""

    schedules: Sequence[tuple[str, str]]
    since: date


class AuditChainEnds(Question[AuditChain], frozen=True, kw_only=False):
    """The ends of the audit log's hash chain, and how many entries are not sealed: at most ``most``."""

    most: int = 100_000


class AuditSeals(Question[Sequence[AuditSeal]], frozen=True, kw_only=False):
    """The stored seals after this number, in order, at most ``limit``."""

    after: int
    limit: int
