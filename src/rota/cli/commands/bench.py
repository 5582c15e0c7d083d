"""``rota bench``: how fast this store enqueues and runs jobs, in a minute or less."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import click

from ... import operate
from ...app import Rota
from ...core.plurals import plural
from ...model import State
from ...tasks.task import Task
from ...terminal import table
from ...terminal.text import json_text, safe
from ..parts.bench_worker import QUEUE, bench_app
from ..parts.benchmark import Benchmark, BenchResult
from ..parts.confirm import confirm
from ..parts.options import json_option, yes_option
from ..parts.progress import progress
from ..parts.target import Target, pass_target, store_options

MEANING = {
    "single": "one caller that awaits each enqueue",
    "concurrent": "32 callers at once",
    "bulk": "one enqueue_many",
    "drain": "worker processes run all jobs",
    "pickup": "from enqueue to the start of the task",
}
ADVICE = """
A single enqueue costs a round trip and a commit; concurrent callers share commits. The tasks of drain
do nothing, so it is an upper bound. Pickup is measured with an idle worker process."""
COLUMNS = (
    table.Column("MEASUREMENT"),
    table.Column("JOBS/S", right=True),
    table.Column("P50 MS", right=True),
    table.Column("P99 MS", right=True),
    table.Column("MEANING", yields=1),
)


@click.command()
@click.option("--jobs", type=click.IntRange(100, 1_000_000), default=10_000, show_default=True,
              help="Maximum number of jobs per measurement.")  # fmt: skip
@click.option("--measure", "chosen", type=click.Choice(tuple(MEANING)), multiple=True,
              help="Only this measurement (repeatable).  [default: all]")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Worker processes for drain.")  # fmt: skip
@yes_option
@json_option("store", "jobs", "workers", "measures")
@store_options
@pass_target
def bench(
    target: Target, /, jobs: int, chosen: tuple[str, ...], workers: int, yes: bool, as_json: bool
) -> None:
    """Measure the speed of this store with jobs that do nothing.

    They use their own queue and are removed afterwards. Other jobs are not touched, but the server is
    busy meanwhile.
    """
    target.require_store()
    app, task = bench_app(_url(target))
    names = chosen or tuple(MEANING)
    url, results = asyncio.run(_measure(app, task, names, jobs, workers, yes=yes))
    if as_json:
        click.echo(json_text({"store": url, "jobs": jobs, "workers": workers, "measures": results}))
        return
    click.echo(f"{safe(url)}: {plural(jobs, 'job')}, worker processes: {workers}\n")
    table.print_table(COLUMNS, [_row(name, result) for name, result in results.items()])
    click.echo(ADVICE)


def _url(target: Target) -> str | None:
    """The URL of the store; the tasks of --app are not used."""
    return target.url if target.app is None else target.open().settings.url


async def _measure(
    app: Rota, task: Task[..., Any], names: tuple[str, ...], jobs: int, workers: int, *, yes: bool
) -> tuple[str, Mapping[str, BenchResult]]:
    try:
        store = await app.stores.get()
        bench = Benchmark(app, task, store, jobs, workers)
        await bench.clean()
        await _confirm(app, store.url, yes=yes)
        results = {}
        for name in names:
            with progress(f"{name:10}", bench.measurements[name][0]) as tick:
                results[name] = await bench.measure(name, tick)
        return store.url, results
    finally:
        await app.close()


async def _confirm(app: Rota, url: str, *, yes: bool) -> None:
    counts = await operate.stats(await app.stores.get(), app.clock)
    if others := sum(counts[state] for state in State):
        confirm(
            f"{safe(url)} has {plural(others, 'job')}. They are not changed, but the server will be busy "
            f"with the jobs of the benchmark (queue {QUEUE}).",
            "Run the benchmark?",
            yes=yes,
        )


def _row(name: str, result: BenchResult) -> tuple[str, ...]:
    rate = f"{result['jobs_s']:,.0f}" if "jobs_s" in result else "–"
    waits = (f"{result[key]:.2f}" if key in result else "–" for key in ("p50_ms", "p99_ms"))
    return (name, rate, *waits, MEANING[name])
