"""Opening, closing, and what is left over: nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from rota import Rota, StoreUnavailable
from rota.testing import drain


async def test_an_app_can_be_closed_twice_and_used_again(app: Rota) -> None:
    @app.task
    async def work() -> str:
        return "done"

    await work.enqueue()
    await app.close()
    await app.close()
    work.enqueue_sync()
    assert await drain(app) == 2


async def test_a_closed_app_has_no_connections(emptied_postgres_url: str, postgres_server: Any) -> None:
    app = Rota(emptied_postgres_url)

    @app.task
    async def work() -> str:
        return "done"

    async with app.running():
        assert await (await work.enqueue()).result(timeout=20) == "done"
        work.enqueue_sync()
    count = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'rota_surface' AND pid <> pg_backend_pid()"
    assert postgres_server.execute(count)[0][0] > 0
    await app.close()
    deadline = asyncio.get_running_loop().time() + 10
    while postgres_server.execute(count) != [(0,)]:  # a backend takes a moment to go
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)


def test_a_program_that_forgets_to_close_still_ends(sqlite_url: str) -> None:
    program = (
        "import sys\nfrom rota import Rota\napp = Rota(sys.argv[1])\n"
        "app.enqueue_sync('work', {'n': 1})\nprint('stored')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, sqlite_url], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "stored\n", "")


async def test_a_server_that_cannot_be_reached_is_unavailable() -> None:
    app = Rota("postgresql://rota:secret@127.0.0.1:1/nowhere?connect_timeout=2")
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1") as caught:
        await app.enqueue("work")
    assert "secret" not in str(caught.value)
    await app.close()
