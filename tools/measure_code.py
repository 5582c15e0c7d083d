"""Measure the shape of the code: how much a reader must hold in mind, and what a change costs.

    python tools/measure_code.py [--json] [--tests] [--src PATH]

Prints one table: verbs of the store protocol, hops on the main paths (counted on a real run, by the calls that
were made), spellings of one job field, files that name a field or a state, modules at the root, the largest
file, classes with many methods, import cycles (type hints included), class names used twice, sleeps in the
tests, and with ``--tests`` the seconds of ``tests/core``. Standard library and rota only.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parent.parent
GOALS: dict[str, str] = {
    "verbs of the store protocol": "28",
    "hops: enqueue to the store": "3",
    "hops: run, claim to settle": "10",
    "hops: fire a schedule": "6",
    "hops: GET /jobs/{id} to the store": "",
    "store calls of one retry": "",
    "spellings of `parent` in sqlite": "3",
    "spellings of `parent` in postgres": "3",
    "spellings of `parent` shared by stores": "3",
    "files that name a job field (`parent`)": "6",
    "files that name a state (`waiting`)": "6",
    "modules at the root": "6",
    "largest file, lines": "450",
    "classes above 15 methods": "5",
    "modules in an import cycle": "0",
    "class names used twice": "0",
    "sleeps per 1,000 test lines": "1.0",
    "seconds of tests/core": "2",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-v", action="store_true", help="List the functions of the run path.")
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    parser.add_argument("--tests", action="store_true", help="Also run tests/core and take its time.")
    parser.add_argument("--root", type=Path, default=ROOT, help="Measure another checkout.")
    chosen = parser.parse_args()
    found = {**shape(chosen.root), **asyncio.run(paths())}
    if chosen.tests:
        found["seconds of tests/core"] = seconds_of_core(chosen.root)
    if chosen.json:
        print(json.dumps(found, indent=2))
        return
    for name, goal in GOALS.items():
        if name in found:
            print(f"{name:42} {found[name]!s:>8}   {'goal ' + goal if goal else ''}")


# --- what the files show -----------------------------------------------------------------------------


def shape(root: Path) -> dict[str, Any]:
    source = root / "src" / "rota"
    modules = {name(path, source): path for path in sorted(source.rglob("*.py"))}
    trees = {module: ast.parse(path.read_text()) for module, path in modules.items()}
    classes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    names = Counter(node.name for node in classes if not node.name.startswith("_"))
    twice = sorted(one for one, n in names.items() if n > 1)
    large = sorted(f"{node.name} {n}" for node in classes if (n := methods(node)) > 15)
    lengths = {path: len(path.read_text().splitlines()) for path in modules.values()}
    longest = max(lengths, key=lambda path: lengths[path])
    cycle = largest_cycle(imports(trees, modules))
    return {
        "verbs of the store protocol": verbs(trees["rota.store.protocol"]),
        "spellings of `parent` in sqlite": spellings(source / "store/sqlite"),
        "spellings of `parent` in postgres": spellings(source / "store/postgres"),
        "spellings of `parent` shared by stores": spellings(source / "store")
        - spellings(source / "store/sqlite")
        - spellings(source / "store/postgres"),
        "files that name a job field (`parent`)": naming(source, r"\bparent\b"),
        "files that name a state (`waiting`)": naming(source, r"WAITING|['\"]waiting['\"]"),
        "modules at the root": sum(1 for path in source.glob("*.py")),
        "largest file, lines": f"{lengths[longest]} {longest.relative_to(source)}",
        "classes above 15 methods": f"{len(large)} {', '.join(large)}".strip(),
        "modules in an import cycle": len(cycle),
        "class names used twice": f"{len(twice)} {', '.join(twice)}".strip(),
        "sleeps per 1,000 test lines": sleeps(root / "tests"),
    }


def name(path: Path, source: Path) -> str:
    parts = ("rota", *path.relative_to(source).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def methods(node: ast.ClassDef) -> int:
    """Methods of its own; overloads count once, and so do the rules of the conformance suite not at all."""
    own = {
        item.name
        for item in node.body
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and not item.name.startswith("test_")
    }
    return len(own)


def verbs(protocol: ast.Module) -> int:
    """Methods of ``Store``: properties and attributes are data."""
    (store,) = [node for node in protocol.body if isinstance(node, ast.ClassDef) and node.name == "Store"]
    return len(
        {
            item.name
            for item in store.body
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
            and not any(isinstance(mark, ast.Name) and mark.id == "property" for mark in item.decorator_list)
        }
    )


def spellings(folder: Path) -> int:
    """How often ``parent`` is written in the stores' own files; generated ones are not written by anybody."""
    return sum(
        len(re.findall(r"(?<![.\w])parent\b(?!s)", re.sub(r"\.parent\b", "", text(path))))
        for path in folder.rglob("*")
        if path.suffix in {".py", ".sql"} and not is_generated(path)
    )


def is_generated(path: Path) -> bool:
    return "generated" in path.parts or "rendered" in path.parts or "generated" in text(path)[:300].lower()


def naming(source: Path, pattern: str) -> int:
    files = [
        path
        for path in source.rglob("*")
        if path.suffix in {".py", ".sql", ".js"}
        and not {"testing", "vendor", "demo"} & set(path.parts)
        and not is_generated(path)
    ]
    return sum(1 for path in files if re.search(pattern, re.sub(r"\.parent\b", "", text(path))))


def text(path: Path) -> str:
    return path.read_text(errors="replace")


def sleeps(tests: Path) -> float:
    lines = found = 0
    for path in tests.rglob("*.py"):
        body = text(path)
        lines += body.count("\n")
        found += len(re.findall(r"(?:asyncio|time)\.sleep\((?!0\))|wait_for_timeout\(", body))
    return round(1000 * found / lines, 2)


def imports(trees: dict[str, ast.Module], modules: dict[str, Path]) -> dict[str, set[str]]:
    """Which module imports which, type hints and imports inside functions included."""
    edges: dict[str, set[str]] = defaultdict(set)
    for module, tree in trees.items():
        package = module if modules[module].name == "__init__.py" else module.rpartition(".")[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                target = ".".join([*base, *filter(None, [node.module])])
                for alias in node.names:
                    one = f"{target}.{alias.name}"
                    edges[module].add(one if one in trees else target)
    return {
        module: {one for one in found if one in trees and one != module} for module, found in edges.items()
    }


def largest_cycle(edges: dict[str, set[str]]) -> set[str]:
    """The largest set of modules that all reach each other (Tarjan); empty if there is none."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    best: set[str] = set()

    def visit(node: str) -> None:
        nonlocal best
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            members = set(stack[stack.index(node) :])
            del stack[stack.index(node) :]
            if len(members) > max(1, len(best)):
                best = members

    for node in list(edges):
        if node not in index:
            visit(node)
    return best


# --- what a run shows --------------------------------------------------------------------------------


async def paths() -> dict[str, int]:
    """Hops of the main paths, counted in this process on SQLite in memory."""
    return {
        "hops: enqueue to the store": await enqueue_hops(),
        "hops: run, claim to settle": await run_hops(),
        "hops: fire a schedule": await fire_hops(),
        "store calls of one retry": await retry_calls(),
    }


def is_ours(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return "/rota/" in file and not frame.f_code.co_name.startswith("<")


def is_store(frame: FrameType) -> bool:
    return "/rota/store/" in frame.f_code.co_filename


def stack_hops(verb: str, verbs_seen: list[int]) -> Any:
    """A profile function that notes how many of our functions stand above the store's verb."""

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == verb and is_store(frame):
            hops, above = 0, frame.f_back
            while above is not None:
                hops += is_ours(above) and not is_store(above)
                above = above.f_back
            verbs_seen.append(hops + 1)

    return profile


@contextmanager
def profiled(function: Any) -> Iterator[None]:
    sys.setprofile(function)
    try:
        yield
    finally:
        sys.setprofile(None)


async def enqueue_hops() -> int:
    from rota import Rota

    app = Rota("sqlite://:memory:")

    @app.task
    async def nothing() -> None: ...

    await nothing.enqueue()
    seen: list[int] = []
    with profiled(stack_hops("insert", seen)):
        await nothing.enqueue()
    await app.close()
    return seen[0]


JOB = {"Job", "Run", "Execution", "Change", "Settlement", "Succeeded"}
SCHEDULE = {"Schedule", "Due", "DueSchedules", "Firing"}


def carries(frame: FrameType, cargo: set[str]) -> bool:
    """Whether the function is handed the thing in one of its forms; constructors only make another form."""
    code = frame.f_code
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values = [frame.f_locals.get(name) for name in given if name != "self"]
    return code.co_name != "__init__" and any(is_cargo(value, cargo) for value in values)


def is_cargo(value: Any, cargo: set[str]) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and is_cargo(value[0], cargo)
    return type(value).__name__ in cargo


async def fire_hops() -> int:
    """The longest chain of our functions from the tick of the scheduler to a decision, and the two verbs."""
    from rota import Rota

    app = Rota("sqlite://:memory:")

    @app.every("1s", start_at="2020-01-01T00:00:00Z", missed="latest")
    async def nothing() -> None: ...

    depths: list[int] = []
    state = {"on": False}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not is_ours(frame):
            return
        if frame.f_code.co_name == "due_schedules" and is_store(frame):
            state["on"] = True
        elif frame.f_code.co_name == "fire" and is_store(frame):
            state["on"] = False
        elif state["on"] and not is_store(frame) and carries(frame, SCHEDULE):
            depths.append(depth(frame))

    async with app.worker(**still()) as worker:
        scheduler = worker.scheduler
        assert scheduler is not None
        tick = getattr(scheduler, "tick", None) or scheduler.step
        await tick()
        with profiled(profile):
            await asyncio.sleep(1.1)
            await tick()
    await app.close()
    return max(depths) + 2


def depth(frame: FrameType | None) -> int:
    """How many of our functions are on the stack."""
    found = 0
    while frame is not None:
        found += is_ours(frame) and not is_store(frame)
        frame = frame.f_back
    return found


def still(**given: Any) -> dict[str, Any]:
    """Options of a worker that does nothing but run jobs, by the names that this checkout has."""
    from rota.worker.worker import WorkerOptions

    quiet: dict[str, Any] = {
        "keeper": False,
        "heartbeat_thread": False,
        "upkeep": False,
        "maintenance": False,
    }
    known = set(getattr(WorkerOptions, "__struct_fields__", ()))
    return {key: value for key, value in quiet.items() if key in known} | given


async def run_hops() -> int:
    """Functions of ours that one job passes from the claim that brings it to the turn that settles it."""
    from rota import Rota

    app = Rota("sqlite://:memory:")

    @app.task
    async def nothing() -> None: ...

    calls: list[tuple[str, str]] = []
    state = {"on": False}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if state["on"] and event == "call" and is_ours(frame) and not is_store(frame) and carries(frame, JOB):
            one = (Path(frame.f_code.co_filename).name, frame.f_code.co_qualname)
            if one not in calls:
                calls.append(one)

    store = await app.stores.get() if hasattr(app, "stores") else await app.runtime.stores.get()
    turn = store.turn

    async def watched(settlements: Any, *rest: Any, **given: Any) -> Any:
        if settlements:
            state["on"] = False
        result = await turn(settlements, *rest, **given)
        if result.jobs:
            state["on"] = True
        return result

    store.turn = watched  # type: ignore[method-assign]
    await nothing.enqueue()
    with profiled(profile):
        async with app.worker(**still(burst=True, scheduler=False, concurrency=1)) as worker:
            await worker.run()
    await app.close()
    if "-v" in sys.argv:
        print(*calls, sep="\n")
    return len(calls) + 2  # and the two turns of the store


VERBS = {"jobs", "edit", "append_audit", "get", "find", "documents", "put", "put_document", "count", "survey"}


async def retry_calls() -> int:
    """Calls of the store that one retry by an operator makes."""
    from rota import Rota

    app = Rota("sqlite://:memory:")
    job = await app.enqueue("nothing", {})
    await job.cancel()
    operations = getattr(app, "operations", None) or app.desk
    seen: list[FrameType] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.endswith("/sqlite/store.py") and frame.f_back:
            above: FrameType | None = frame.f_back
            name = frame.f_code.co_name
            if above is not None and not is_store(above) and name in VERBS and frame not in seen:
                seen.append(frame)  # a coroutine that is resumed is not called again

    with profiled(profile):
        await operations().jobs.retry(job.id)
    await app.close()
    return len(seen)


def seconds_of_core(root: Path) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/core"]
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
    return round(time.perf_counter() - began, 1)


if __name__ == "__main__":
    main()
