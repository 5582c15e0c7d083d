"""Patience: what is asked again, and when it ends."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from rota import Rota
from rota.errors import StoreUnavailable
from rota.runtime import patience
from rota.runtime.clock import monotonic
from rota.runtime.patience import Patience

AWAY = StoreUnavailable("away")
ENDLESS_S = 3600.0


class Flaky:
    """Fails this many times, then answers."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.asked = 0

    async def __call__(self) -> str:
        self.asked += 1
        if self.asked <= self.failures:
            raise StoreUnavailable(f"failure {self.asked}")
        return "answer"


async def test_without_patience_it_is_asked_once_more() -> None:
    ask = Flaky(2)
    with pytest.raises(StoreUnavailable, match="failure 1"):
        await Patience().outlast(ask, AWAY, monotonic(), 0.0)
    assert ask.asked == 1
    assert await Patience().outlast(Flaky(0), AWAY, monotonic(), 0.0) == "answer"


async def test_it_is_asked_until_it_answers() -> None:
    assert await Patience().outlast(Flaky(5), AWAY, monotonic(), ENDLESS_S) == "answer"


async def test_patience_counts_from_the_first_question() -> None:
    ask = Flaky(100)
    with pytest.raises(StoreUnavailable, match=r"failure 1 .waited for 50"):
        await Patience().outlast(ask, AWAY, monotonic() - 50, 49.0)
    assert ask.asked == 1


async def test_what_waiting_does_not_cure_is_not_asked_again() -> None:
    ask = Flaky(0)
    broken = StoreUnavailable("the disk is full", is_temporary=False)
    with pytest.raises(StoreUnavailable) as caught:
        await Patience().outlast(ask, broken, monotonic(), ENDLESS_S)
    assert caught.value is broken
    assert ask.asked == 0


async def test_a_question_without_an_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "ANSWER_S", 0.05)
    with pytest.raises(StoreUnavailable, match=r"away .waited"):
        await Patience().outlast(asyncio.Event().wait, AWAY, monotonic(), 0.05)


async def test_the_wait_for_a_lock_is_not_doubled(tmp_path: Path) -> None:
    """The store has waited for it already, as long as its URL says."""
    file = tmp_path / "rota.db"
    app = Rota(f"sqlite:///{file}?timeout=0.2", enqueue_patience_s=ENDLESS_S)
    await app.enqueue("work", {})
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="write lock") as caught:
            await asyncio.wait_for(app.enqueue("work", {}), 60)
        other.execute("ROLLBACK")
    other.close()
    assert "waited" not in str(caught.value)
    await app.close()
