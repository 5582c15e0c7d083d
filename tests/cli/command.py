"""The command ``rota`` as a user meets it: a process of its own, in a folder with a small app."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

import rota

SOURCE = str(Path(rota.__file__).resolve().parents[1])
DEADLINE_S = 30.0

SHOP = """
import asyncio
from rota import Context, Rota

app = Rota("sqlite:///shop.db", poll_interval_ms=50, lease_duration_s=5)
not_an_app = 42

@app.task
async def add(a: int, b: int) -> int:
    return a + b

@app.task(max_attempts=1)
def boom(text: str) -> None:
    raise ValueError(text)

@app.task
async def nap(ctx: Context, seconds: float) -> str:
    ctx.progress(40, "half asleep")
    ctx.log("lying down")
    await asyncio.sleep(seconds)
    return "rested"
"""


def make_shop(folder: Path) -> Path:
    (folder / "shop.py").write_text(SHOP)
    return folder


def environment(**more: str) -> dict[str, str]:
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith("ROTA_") and k not in ("DATABASE_URL", "NO_COLOR")
    }
    return {**kept, "PYTHONPATH": SOURCE, "PYTHONUNBUFFERED": "1", **more}


def rota_command(*args: str, cwd: Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``rota`` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "rota", *args], cwd=cwd, env=environment(**env), input=stdin,
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip


def read_json(*args: str, cwd: Path) -> Any:
    done = rota_command(*args, "--json", cwd=cwd)
    return msgspec.json.decode(done.stdout)


@contextlib.contextmanager
def started(*args: str, cwd: Path, **env: str) -> Iterator[subprocess.Popen[str]]:
    """A ``rota`` in the background with its output in ``out.txt``. It is killed when the block ends."""
    with (cwd / "out.txt").open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "rota", *args], cwd=cwd, env=environment(**env),
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def said(cwd: Path) -> str:
    return (cwd / "out.txt").read_text()


def eventually(what: Callable[[], Any], why: str) -> Any:
    """Poll until it holds; fail at a deadline with the reason."""
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError(f"never came true within {DEADLINE_S:g} s: {why}")
