"""Runs the blocks of one page, one after another, in the current directory: ``page_runner.py STEPS.json``.

Python blocks share a namespace and may use ``await``. A block whose first line names a file becomes
that file. A console block runs its ``$`` lines in a shell; the lines below each must match what it
prints, with ``…`` for anything.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

LONGEST_S = 60


def main() -> None:
    steps: list[dict[str, Any]] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path.insert(0, str(Path.cwd()))
    page = sys.modules["page"] = ModuleType("page")  # classes look for the module they are made in
    space = vars(page)
    with asyncio.Runner() as runner:
        for step in steps:
            if step["file"]:
                name, more = step["file"]
                save(name, more, step["text"])
            elif step["language"] == "python":
                run_python(step, space, runner)
            elif step["language"] == "console":
                run_console(step)
        for value in space.values():
            if type(value).__name__ == "Rota":
                runner.run(value.close())


def save(name: str, more: bool, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    earlier = path.read_text(encoding="utf-8") + "\n\n" if more else ""
    path.write_text(earlier + text, encoding="utf-8")


def run_python(step: dict[str, Any], space: dict[str, Any], runner: asyncio.Runner) -> None:
    # Blank lines in front, so that a traceback names the line of the page.
    source = "\n" * (step["line"] - 1) + step["text"]
    code = compile(source, step["page"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        runner.run(eval(code, space))
    else:
        exec(code, space)


def run_console(step: dict[str, Any]) -> None:
    for part in re.split(r"^\$ ", step["text"], flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        done = subprocess.run(
            command,
            shell=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_S,
        )
        where = f"{step['page']}, line {step['line']}: $ {command}"
        if done.returncode != 0:
            raise SystemExit(f"{where}\nended with {done.returncode}:\n{done.stdout}")
        if expected.strip() and not matches(expected, done.stdout):
            raise SystemExit(f"{where}\nthe page shows:\n{expected}\nbut it printed:\n{done.stdout}")


def matches(expected: str, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in _lines(expected).split("…"))
    return re.fullmatch(pattern, _lines(printed), re.DOTALL) is not None


def _lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    main()
