"""How the code may be put together: no import cycles, sleeping in one place, choices spelled once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

import rota
from rota.model import CalendarMode, Executor, Missed, OnConflict, Overlap

SOURCE = Path(rota.__file__).parent
MAY_SLEEP = {
    "runtime/service.py",  # the loop that services share
    "store/postgres/listener.py",  # below the runtime: reconnects by itself
    "store/postgres/waker.py",
    "demo/tasks.py",  # sample tasks that take a while
}


@cache
def modules() -> dict[str, Path]:
    return {_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def _name(path: Path) -> str:
    return ".".join(("rota", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(name: str, path: Path) -> set[str]:
    """What a module imports of rota: at the top, in functions and for type checking alike."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join((*parts, *filter(None, [node.module])))
            both = [(source, f"{source}.{alias.name}") for alias in node.names]
            found |= {inner if inner in modules() else outer for outer, inner in both}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules().keys() - {name}


def cycles() -> Iterator[list[str]]:
    """Modules that import each other, directly or through others: what is left after peeling both ends."""
    graph = {name: imports(name, path) for name, path in modules().items()}
    while graph:
        used = set().union(*graph.values())
        free = {name for name, targets in graph.items() if not targets & graph.keys() or name not in used}
        if not free:
            break
        graph = {name: targets - free for name, targets in graph.items() if name not in free}
    if graph:
        yield sorted(graph)


def test_no_module_imports_itself_through_others_not_even_for_type_hints() -> None:
    found = {name for cycle in cycles() for name in cycle}
    assert not found


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, ast.Call))


def sleeps(path: Path) -> bool:
    """Whether it waits for time to pass; ``asyncio.sleep(0)`` only lets others run."""
    return any(
        ast.unparse(call.func) in ("asyncio.sleep", "time.sleep", "sleep")
        and ast.unparse(call.args[0]) != "0"
        for call in calls(path)
    )


def test_only_the_service_loop_and_the_wake_ups_of_postgresql_sleep() -> None:
    sleeping = {path.relative_to(SOURCE).as_posix() for path in modules().values() if sleeps(path)}
    assert sleeping <= MAY_SLEEP
    assert "runtime/service.py" in MAY_SLEEP and "store/postgres/listener.py" in sleeping


@pytest.mark.parametrize("choice", [Missed, Overlap, CalendarMode, OnConflict, Executor], ids=str)
def test_a_choice_is_spelled_once(choice: object) -> None:
    """As a Literal of its values; anyone else imports the alias."""
    values = get_args(choice)
    spelled = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        for node in ast.walk(tree(path))
        if isinstance(node, (ast.Tuple, ast.List, ast.Set))
        and tuple(one.value for one in node.elts if isinstance(one, ast.Constant)) == values
    ]
    allowed = ("rota.model.choices:", "rota.operate.requests", "rota.cli.", "rota.testing.")
    assert [place for place in spelled if not place.startswith(allowed)] == []
