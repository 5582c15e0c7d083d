"""Change the code in small ways and see whether the tests notice: ``make mutation``.

Draws a sample of mutants from the pure rules and from the stores' hot path, the same for the same seed. Each is
written into a copy of the sources, and the tests of its subject are run until one fails. What survives is
printed as a diff: a missing test, or a change without a meaning (an equivalent mutant).
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import hypothesis  # noqa: F401 - for the forks
import msgspec  # noqa: F401 - for the forks
import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
CORE_TESTS = ("tests/core",)
STORE_TESTS = ("tests/conformance/test_stores.py",)
# What is mutated, and the tests that are to notice; first those named after the module, if there are any.
SUBJECTS: dict[str, tuple[str, ...]] = {
    "src/rota/core/**/*.py": CORE_TESTS,
    "src/rota/store/sqlite/claims.py": STORE_TESTS,
    "src/rota/store/sqlite/settlement_writes.py": STORE_TESTS,
    "src/rota/store/sqlite/inserts.py": STORE_TESTS,
    "src/rota/store/sqlite/job_edits.py": STORE_TESTS,
    "src/rota/store/postgres/claims.py": STORE_TESTS,
    "src/rota/store/postgres/inserts.py": (*STORE_TESTS, "tests/stores/test_postgres_insert.py"),
    "src/rota/store/group_commit.py": (*STORE_TESTS, "tests/stores"),
}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SUMS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.Add,
}  # fmt: skip
LIMIT_S = 300.0


@dataclass(frozen=True)
class Mutant:
    path: Path
    line: int
    what: str
    text: str  # of the whole module

    def diff(self) -> str:
        before = ast.unparse(ast.parse(self.path.read_text())).splitlines()
        changed = difflib.unified_diff(before, self.text.splitlines(), lineterm="", n=1)
        return "\n".join(line for line in changed if not line.startswith(("---", "+++", "@@")))


def mutations(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Each small change of this node alone."""
    changed = copy.deepcopy(node)
    if isinstance(changed, ast.Compare) and type(changed.ops[0]) in COMPARISONS:
        changed.ops[0] = COMPARISONS[type(changed.ops[0])]()
        yield "comparison", changed
    elif isinstance(changed, ast.BoolOp):
        changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
        yield "and/or", changed
    elif isinstance(changed, ast.BinOp) and type(changed.op) in SUMS:
        changed.op = SUMS[type(changed.op)]()
        yield "arithmetic", changed
    elif isinstance(changed, ast.Constant) and isinstance(changed.value, bool):
        changed.value = not changed.value
        yield "constant", changed
    elif isinstance(changed, ast.Constant) and isinstance(changed.value, int):
        changed.value += 1
        yield "constant", changed
    elif isinstance(changed, ast.UnaryOp) and isinstance(changed.op, ast.Not):
        yield "not removed", changed.operand
    elif isinstance(changed, ast.If | ast.IfExp | ast.While):
        changed.test = ast.UnaryOp(ast.Not(), changed.test)
        yield "condition", changed
    elif isinstance(changed, ast.Return) and not _is_none(changed.value):
        changed.value = ast.Constant(None)
        yield "returns None", changed


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a module; annotations, docstrings and what only type checkers run are left alone."""
    tree = ast.parse(path.read_text())
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if name in ("annotation", "returns", "decorator_list", "keywords") and not isinstance(
                parent, ast.Call
            ):
                continue
            for index, node in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(node, ast.AST) or _is_type_checking(node):
                    continue
                for what, changed in mutations(node):
                    ast.copy_location(changed, node)
                    _put(parent, name, index, changed)
                    text = ast.unparse(ast.fix_missing_locations(tree))
                    _put(parent, name, index, node)
                    yield Mutant(path, getattr(node, "lineno", 0), what, text)


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _put(parent: ast.AST, name: str, index: int, node: ast.AST) -> None:
    value = getattr(parent, name)
    if isinstance(value, list):
        value[index] = node
    else:
        setattr(parent, name, node)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def tests_of(path: Path, tests: tuple[str, ...]) -> tuple[str, ...]:
    named = sorted((ROOT / "tests").rglob(f"test_{path.stem}.py"))
    return (*(str(one.relative_to(ROOT)) for one in named), *tests)


def survives(mutant: Mutant, tests: tuple[str, ...], copied: Path) -> bool:
    target = copied / mutant.path.relative_to(SOURCE)
    original = target.read_text()
    target.write_text(mutant.text)
    try:  # the most likely to fail come first
        return all(_passes(one, copied) for one in tests)
    finally:
        target.write_text(original)


def _passes(tests: str, copied: Path) -> bool:
    """Run them in a fork of this process, which has imported what takes long."""
    child = os.fork()
    if child == 0:
        _run_tests(tests, copied)
    deadline = time.monotonic() + LIMIT_S
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.02)
    return os.waitstatus_to_exitcode(ended[1]) in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def _run_tests(tests: str, copied: Path) -> NoReturn:
    code = 1
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        os.environ["PYTHONPATH"] = str(copied)
        sys.dont_write_bytecode = True
        sys.path[:0] = [str(copied), str(ROOT)]
        apart = f"--basetemp={copied.parent / 'tmp'}"  # a session removes the folders of others
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--timeout=60", apart, tests]))
    finally:
        os._exit(code)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sample", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--minutes", type=float, default=float("inf"), help="stop after this long")
    options.add_argument("--only", default="", help="part of the paths to mutate")
    given = options.parse_args()
    pool = [
        (mutant, tests_of(path, tests))
        for pattern, tests in SUBJECTS.items()
        for path in sorted(ROOT.glob(pattern))
        if given.only in str(path)
        for mutant in mutants(path)
    ]
    chosen = random.Random(given.seed).sample(pool, min(given.sample, len(pool)))
    alive, tried, deadline = 0, 0, time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory(prefix="rota-mutants-") as folder:
        copied = Path(folder) / "src"
        shutil.copytree(SOURCE, copied, ignore=shutil.ignore_patterns("__pycache__"))
        os.chdir(ROOT)
        for mutant, tests in chosen:
            if time.monotonic() > deadline:
                break
            tried += 1
            if survives(mutant, tests, copied):
                alive += 1
                print(
                    f"survived: {mutant.path.relative_to(ROOT)}:{mutant.line} ({mutant.what})\n{mutant.diff()}\n"
                )
            if tried % 20 == 0:
                print(f"{tried} of {len(chosen)}: {alive} survived", flush=True)
    noticed = tried - alive
    print(
        f"{noticed} of {tried} mutants noticed: {100 * noticed / max(1, tried):.0f} % (there are {len(pool)})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
