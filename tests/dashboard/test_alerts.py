"""A schedule that keeps failing: an alert is sent, and its page shows the history."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import expect
from scene import Visit
from timetable import make

from admin.sites import Site, eventually
from cli.command import started

# As docs/howto/hooks.md summary: hooks stand in the module that the workers load.
PROGRAM = """
import asyncio
import json
import os
import urllib.request

from rota import Context, Event, Rota

app = Rota(poll_interval_ms=50)


@app.task(name="close_books", max_attempts=1)
async def close_books(ctx: Context) -> None:
    ctx.log("adding up the day")
    raise ValueError("the sums differ")


@app.on("job.failed")
async def alert(event: Event) -> None:
    runs = await app.schedules.runs(event.job.schedule, limit=3)
    in_a_row = sum(run.success is False for run in runs.items)
    received = {"schedule": event.job.schedule, "why": event.job.error["message"], "wake": in_a_row >= 3}
    await asyncio.to_thread(urllib.request.urlopen, os.environ["PAGER"], json.dumps(received).encode(), 30)
"""


@contextmanager
def pager() -> Iterator[tuple[str, list[Any]]]:
    """An external notification service: its address, and what it received."""
    received: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_schedule_failures_alert_then_escalate_and_appear_in_its_history_with_logs(
    visit: Visit, site: Site, tmp_path: Path
) -> None:
    """S7: trigger, history with logs; alerts on failure, notifications, escalation on repeated failure."""
    (tmp_path / "program.py").write_text(PROGRAM)
    make(site, "evening", task="close_books", payload={}, max_attempts=1)
    page = visit("/schedules/evening", role="operator").page
    runs = page.get_by_role("table", name="Runs", exact=True).locator("tbody tr")
    worker = ("worker", "--app", "program:app", "--url", site.rota.settings.url)
    with pager() as (address, received), started(*worker, cwd=tmp_path, PAGER=address):
        for n in (1, 2, 3):
            page.get_by_role("button", name="Trigger").click()
            eventually(lambda n=n: len(received) == n, "the pager receives the failure")  # type: ignore[misc]
            expect(runs.filter(has_text="the sums differ")).to_have_count(n)
    alert = {"schedule": "evening", "why": "the sums differ"}
    assert received == [{**alert, "wake": False}, {**alert, "wake": False}, {**alert, "wake": True}]
    runs.first.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("close_books")
    expect(page.locator("#main")).to_contain_text("adding up the day")
