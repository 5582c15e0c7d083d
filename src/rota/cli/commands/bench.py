"""``rota bench``: how fast jobs are stored and run on the store at hand, in a minute or less."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import click

from ... import operate
from ...app import Rota
from ...model import State
from ...tasks.task import Task
from ...terminal import table
from ...terminal.text import json_text, plural, safe
from ..parts.bench_worker import QUEUE, bench_app
from ..parts.benchmark import Benchmark, BenchResult
from ..parts.confirm import confirm
from ..parts.progress import progress
from ..parts.target import Target, pass_target, target_options

MEANING = {
    "single": "one caller that awaits each job",
    "concurrent": "32 callers, each awaiting its job",
    "bulk": "one enqueue_many",
    "drain": "run by worker processes to the last",
    "pickup": "from the call to the task's start",
}
ADVICE = """
A single job costs a round trip and a commit on this server; callers at once share commits.
The drain is an upper bound: these tasks do nothing. Pickup is the wait for an idle worker process."""
COLUMNS = (
    table.Column("MEASURE"),
    table.Column("JOBS/S", right=True),
    table.Column("P50 MS", right=True),
    table.Column("P99 MS", right=True),
    table.Column("WHAT IT IS", yields=1),
)


@click.command()
@click.option("--jobs", type=click.IntRange(100, 1_000_000), default=10_000, show_default=True,
              help="How many jobs a measure may store.")  # fmt: skip
@click.option("--measure", "chosen", type=click.Choice(tuple(MEANING)), multiple=True,
              help="Only this one; again for several.  [default: all]")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Worker processes of drain.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Do not ask, even if the store holds other jobs.")
@click.option("--json", "as_json", is_flag=True, help="The figures as one object.")
@target_options
@pass_target
def bench(
    target: Target, /, jobs: int, chosen: tuple[str, ...], workers: int, yes: bool, as_json: bool
) -> None:
    """Measure the store at hand with jobs that do nothing.

    They wait in a queue of their own and are removed again; other jobs are not touched, but the
    server is kept busy meanwhile.
    """
    target.refuse_api()
    app, task = bench_app(_url(target))
    names = chosen or tuple(MEANING)
    url, taken = asyncio.run(_take(app, task, names, jobs, workers, yes=yes))
    if as_json:
        click.echo(json_text({"store": url, "jobs": jobs, "workers": workers, "measures": taken}))
        return
    click.echo(f"{safe(url)}: {plural(jobs, 'job')}, worker processes: {workers}\n")
    table.print_table(COLUMNS, [_row(name, figures) for name, figures in taken.items()])
    click.echo(ADVICE)


def _url(target: Target) -> str | None:
    """The store in force; the tasks of the app that was named stay out of it."""
    return target.url if target.app is None else target.open().settings.url


async def _take(
    app: Rota, task: Task[..., Any], names: tuple[str, ...], jobs: int, workers: int, *, yes: bool
) -> tuple[str, Mapping[str, BenchResult]]:
    try:
        store = await app.stores.get()
        bench = Benchmark(app, task, store, jobs, workers)
        await bench.clean()
        await _ask(app, store.url, yes=yes)
        taken = {}
        for name in names:
            with progress(f"{name:10}", bench.measures[name][0]) as tick:
                taken[name] = await bench.take(name, tick)
        return store.url, taken
    finally:
        await app.close()


async def _ask(app: Rota, url: str, *, yes: bool) -> None:
    counts = await operate.stats(await app.stores.get(), app.clock)
    if others := sum(counts[state] for state in State):
        confirm(
            f"{safe(url)} holds {plural(others, 'job')}. They stay as they are, but the server will be busy "
            f"with those of the benchmark (queue {QUEUE}).",
            "Measure it?",
            yes=yes,
        )


def _row(name: str, figures: BenchResult) -> tuple[str, ...]:
    rate = f"{figures['jobs_s']:,.0f}" if "jobs_s" in figures else "–"
    waits = (f"{figures[key]:.2f}" if key in figures else "–" for key in ("p50_ms", "p99_ms"))
    return (name, rate, *waits, MEANING[name])
