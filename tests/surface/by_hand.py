"""Rows of schedules written with plain SQL, and a scheduler that looks at them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg

from rota import Rota
from rota.store.sqlite.rows import micros
from rota.testing import FakeClock


def by_hand(url: str, statement: str, *params: Any) -> None:
    """Run ``statement`` with the name of the table for {table} and ? for parameters."""
    if url.startswith("sqlite"):
        params = tuple(micros(value) if isinstance(value, datetime) else value for value in params)
        with closing(sqlite3.connect(Path(url.removeprefix("sqlite:///")))) as connection, connection:
            connection.execute(statement.format(table="rota_schedules"), params)
        return
    text = statement.format(table="rota.schedules").replace("?", "%s")
    with psycopg.connect(url) as other:
        other.execute(text.encode(), params)


async def tick(app: Rota, seconds: float = 0) -> None:
    assert isinstance(app.clock, FakeClock)
    app.clock.advance(seconds)
    async with app.worker() as worker:
        assert worker.scheduler is not None
        while await worker.scheduler.tick() == 0:
            pass
