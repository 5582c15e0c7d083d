"""The lanes a worker may claim from, and what a process remembers of them between claims.

In the line, a lane is a queue and a task that have ready jobs. What something holds up when a claim meets it
leaves the line, once, and lies in a lane of its queue, tenant, task and what held it up (``rota_jobs.lane``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from ...core.jobs.admission import Head, Turn
from ...model import ClaimRequest
from .allowances import RulesInForce, read_rules
from .statements import statement
from .writer import Transaction

TENANT = ""  # the lane of what a tenant is under
NOWHERE = ("", "", "", "")
SPREAD = (5**0.5 - 1) / 2  # its multiples, without the whole part, fill the range from 0 to 1 evenly
MOST_RANKS = 1000  # queues and ranks of which the tenants are remembered

HeldLane = tuple[str, str, str, str]  # queue, tenant, lane, task
Queues = Mapping[str, Mapping[str, Head]]  # the tasks of each with their first jobs


class Signs(NamedTuple):
    """What a claim has to respect beside the order."""

    version: int  # of the rules
    held: int  # whether jobs are held
    laned: int  # whether jobs in the line can be reached by their tenants
    fair: int  # whether that has been noted


class ClaimMemory:
    """What claims of one process remember. A claim without it is right, too, only slower or less even."""

    def __init__(self) -> None:
        self._rules: tuple[int, RulesInForce] | None = None
        self.cursor: HeldLane = NOWHERE  # the last held lane that a claim has looked into
        self.round_start: HeldLane | None = None  # where an unfinished round of claims that were short began
        self.has_wrapped = False  # whether that round is past the last lane, and began again at the first
        self.is_ruled = False  # whether the last claim saw limits
        self.is_holding = False  # whether the last claim saw held jobs
        self.tenants: dict[
            tuple[str, int], tuple[int, set[str]]
        ] = {}  # by queue and rank: when they were read
        self.claims = 0  # in which tenants shared
        self.turn: dict[str, str] = {}  # by queue: the tenant that was looked up last
        self.turns: dict[str, Turn] = {}  # by queue, where weights differ
        self._draws = 0
        self.ahead: dict[str, int] = {}  # by queue: how many began where not all needed a free slot
        self.carry: dict[str, Mapping[str, float]] = {}  # by queue: what tenants are owed

    def draw(self) -> float:
        """A number from 0 up to 1. Those that are drawn are spread evenly."""
        self._draws += 1
        return self._draws * SPREAD % 1

    def rules(self, transaction: Transaction, version: int) -> RulesInForce:
        if self._rules is None or self._rules[0] != version:
            self._rules = (version, read_rules(transaction))
        return self._rules[1]

    def remember_tenants(self, queue: str, rank: int, now: int, names: Sequence[str]) -> tuple[int, set[str]]:
        if len(self.tenants) > MOST_RANKS:
            self.tenants.clear()
        known = self.tenants[queue, rank] = (now, set(names))
        return known

    def forget_tenants(self, queue: str, rank: int, names: set[str]) -> None:
        if known := self.tenants.get((queue, rank)):
            known[1].difference_update(names)

    def note_tenants(self, waiting: set[tuple[str, int, str]]) -> None:
        """Jobs of these tenants were stored, by queue and rank."""
        for queue, rank, tenant in waiting:
            if known := self.tenants.get((queue, rank)):
                known[1].add(tenant)


def line_lanes(transaction: Transaction, want: ClaimRequest) -> tuple[Queues, Signs | None]:
    """The queues open to the worker; None: order alone decides."""
    rows: Sequence[tuple[str | None, ...]] = transaction.execute(_lanes_and_signs()).fetchall()
    signs = None
    if rows and rows[-1][0] is None:
        signs = Signs(*rows[-1][1:])  # type: ignore[arg-type]
        rows = rows[:-1]
    return _open_queues(rows, want), signs


def open_lanes(transaction: Transaction, want: ClaimRequest) -> Queues:
    return _open_queues(transaction.execute(statement("lanes")).fetchall(), want)


def _open_queues(rows: Sequence[tuple[str | None, ...]], want: ClaimRequest) -> Queues:
    found: dict[str, dict[str, Head]] = {}
    for queue, task, *head in rows:
        if is_open(want, queue or "", task or ""):
            found.setdefault(queue or "", {})[task or ""] = (head[0], head[1], head[2])  # type: ignore[assignment]
    return found


@cache
def _lanes_and_signs() -> str:
    """In one statement: asking separately would cost more."""
    return f"{statement('lanes')}\nUNION ALL\n{statement('any_rules')}"


def is_open(want: ClaimRequest, queue: str, task: str) -> bool:
    return (
        (want.queues is None or queue in want.queues)
        and queue not in want.exclude_queues
        and (want.tasks is None or task in want.tasks)
    )
