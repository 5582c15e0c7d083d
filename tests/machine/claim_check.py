"""What every claim must keep, checked against the model: limits, order, and that no slot stays empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from machine.model import Entry, Model
from machine.rules_model import nanoseconds
from rota.core.jobs.admission import is_ample
from rota.core.jobs.limits import bucket
from rota.model import ClaimRequest, JobId, Limit, State


def place(job: Entry) -> tuple[int, datetime, str]:
    return (-job.priority, job.run_at, job.id)


class ClaimCheck:
    """One claim: what could be taken, what runs already, and what came back."""

    def __init__(self, model: Model, want: ClaimRequest, now: datetime) -> None:
        self.model, self.rules, self.want, self.now = model, model.rules, want, now
        self.due = model.due(want, now)
        self.running = [job for job in model.jobs.values() if job.state is State.RUNNING]

    def check(self, taken: Sequence[Entry]) -> None:
        """Of one answer of the store."""
        assert len({job.id for job in taken}) == len(taken) <= self.want.limit
        assert all(job in self.due for job in taken), "a job was claimed that is not due or was not asked for"
        self._within_limits(taken)
        self._in_order(taken)

    def rest(self, taken: Sequence[Entry]) -> ClaimRequest:
        """What is still wanted."""
        free = None if self.want.free is None else max(self.want.free - self._tight(taken), 0)
        return msgspec.structs.replace(self.want, limit=self.want.limit - len(taken), free=free)

    def sees_free_slots(self, taken: Sequence[Entry]) -> bool:
        """Whether slots are left for jobs under narrow limits, in whatever order these were taken."""
        if self.want.free is None:
            return True
        over = {job.id: self.rules.over(job) for job in (*self.running, *taken)}
        narrow = {
            name for job in taken for name in over[job.id] if not self._is_ample_after(name, over, taken)
        }
        return sum(not narrow.isdisjoint(over[job.id]) for job in taken) < self.want.free

    def _is_ample_after(self, name: str, over: dict[JobId, dict[str, Limit]], taken: Sequence[Entry]) -> bool:
        limit = next(over[job.id][name] for job in taken if name in over[job.id])
        mine = [job for job in taken if name in over[job.id]]
        asked = self.want.limit if name in self.rules.limits else 1
        if limit.running is not None:
            count = len(mine) + sum(name in over[job.id] for job in self.running)
            if not is_ample(limit.running - count, asked):
                return False
        if (rate := bucket(limit)) is None:
            return True
        left = self.rules.level(name).units_at_most(rate, nanoseconds(self.now)) - sum(
            job.units for job in mine
        )
        return is_ample(left, asked, rate.every_ns)

    # --- never too many ----------------------------------------------------------------------

    def _tight(self, taken: Sequence[Entry]) -> int:
        """How many at least were under a limit that is not ample, and needed a free slot.

        Of one limit: the fewest without which it would have kept enough for others.
        """
        over = {job.id: self.rules.over(job) for job in (*self.running, *taken)}
        most = 0
        for name, limit in {name: limit for job in taken for name, limit in over[job.id].items()}.items():
            is_own = name in self.rules.limits  # a key of a family keeps a place for one more job
            asked = self.want.limit if is_own else 1
            mine = sorted((job for job in taken if name in over[job.id]), key=lambda job: job.units)
            running, units = limit.running, None
            if running is not None:
                running -= sum(name in over[job.id] for job in self.running)
            if (rate := bucket(limit)) is not None:
                units = self.rules.level(name).units_at_most(rate, nanoseconds(self.now))
            ahead = 0
            for job in mine:
                running = None if running is None else running - 1
                units = None if units is None else units - job.units
                ahead += (running is None or is_ample(running, asked)) and (
                    units is None or rate is None or is_ample(units, asked, rate.every_ns)
                )
            most = max(most, len(mine) - ahead)
        return most

    def _within_limits(self, taken: Sequence[Entry]) -> None:
        over = {job.id: self.rules.over(job) for job in (*self.running, *taken)}
        limited = [job for job in taken if over[job.id]]
        if self.want.free is not None:
            assert self._tight(taken) <= self.want.free, (
                "jobs under a limit that is not ample were claimed ahead"
            )
        for name, limit in {name: limit for job in limited for name, limit in over[job.id].items()}.items():
            mine = [job for job in taken if name in over[job.id]]
            if limit.running is not None:
                count = len(mine) + sum(name in over[job.id] for job in self.running)
                assert count <= limit.running, f"{name}: {count} run, at most {limit.running} may"
            if (rate := bucket(limit)) is not None:
                units = sum(job.units for job in mine)
                most = self.rules.level(name).units_at_most(rate, nanoseconds(self.now))
                assert units <= most, f"{name}: {units} units began, the bucket had {most}"
        for number, job in enumerate(sorted(taken, key=place)):
            before = sorted(taken, key=place)[:number]
            assert self.rules.budget_admits(job, self.running, before, self.now), (
                f"{job.tenant}: above the budget"
            )
            assert self._strict_admits(job, taken), (
                f"{job.concurrency_key}: passed the one that waits for its retry"
            )

    def _strict_admits(self, job: Entry, taken: Sequence[Entry]) -> bool:
        key = job.concurrency_key
        if key is None or job.attempt > 0:
            return True
        if not any(limit.strict for name, limit in self.rules.over(job).items() if name.startswith("key:")):
            return True
        return not any(
            other.concurrency_key == key and other.attempt > 0
            for other in self.model.jobs.values()
            if other.state is State.QUEUED and other not in taken
        )

    # --- order -------------------------------------------------------------------------------

    def _in_order(self, taken: Sequence[Entry]) -> None:
        """A job is passed only by others that come before it, or because something holds it up."""
        self._not_passed(
            taken,
            lambda left, job: (
                (left.queue, left.tenant) == (job.queue, job.tenant) and place(left) < place(job)
            ),
        )
        self._not_passed(taken, lambda left, job: left.priority > job.priority)
        for job in taken:  # whatever holds up the job before it, but for a retry that a strict key waits for
            passed = [
                left
                for left in self._left(taken)
                if self._same_lane(left, job) and place(left) < place(job) and self._strict_admits(left, ())
            ]
            assert not passed, f"{job} passed {passed[0]}, which has the same key"

    def _same_lane(self, one: Entry, other: Entry) -> bool:
        lanes = {(job.queue, job.tenant, job.concurrency_key) for job in (one, other)}
        limits = [limit for name, limit in self.rules.over(one).items() if name.startswith("key:")]
        return len(lanes) == 1 and any(limit.running is not None for limit in limits)

    def _not_passed(self, taken: Sequence[Entry], passes: Callable[[Entry, Entry], bool]) -> None:
        for left in self._left(taken):
            by = [job for job in taken if passes(left, job)]
            others = [job for job in taken if job not in by]
            assert not by or self._held_up(left, others), f"{by[0]} passed {left}"

    def _left(self, taken: Sequence[Entry]) -> list[Entry]:
        return [job for job in self.due if job not in taken]

    # --- nothing idle ------------------------------------------------------------------------

    def check_all_are_held_up(self) -> None:
        """Of a claim that found no more: something holds up every job that is due.

        Without a free slot a claim is ahead of time: it need not look behind limited jobs that would run.
        """
        if self.want.free == 0:
            return
        for job in self.due:
            assert self._held_up(job, []), f"{job} could have begun"

    def _held_up(self, job: Entry, taken: list[Entry]) -> bool:
        return self._limits_hold_up(job, taken) or any(
            self._same_lane(other, job) and place(other) < place(job) and self._limits_hold_up(other, taken)
            for other in self._left(taken)
        )

    def _limits_hold_up(self, job: Entry, taken: list[Entry]) -> bool:
        """Some limit, or one that holds up another job and so lets none of those pass that share it."""
        over = self.rules.over(job)
        begun = sum(bool(self.rules.over(other)) for other in taken)
        if over and self.want.free is not None and begun >= self.want.free:
            return True
        if not self._strict_admits(
            job, ()
        ):  # as the claim began: what it takes may set others free for the next
            return True
        if not self.rules.budget_admits(job, self.running, taken, self.now):
            return True
        left = self._left(taken)
        for name, limit in over.items():
            for other in left:
                if name in self.rules.over(other) and not self.rules.admit(
                    name, limit, other, self.running, taken, nanoseconds(self.now)
                ):
                    return True
        return any(
            other.tenant == job.tenant and not self.rules.budget_admits(other, self.running, taken, self.now)
            for other in left
        )
