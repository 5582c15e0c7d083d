"""The documentation is true: examples run, commands exist, names are documented, links work."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from pages import DOCS, ROOT, Block, Page, all_pages

import rota
from rota import errors
from rota.cli.root import COMMANDS, root
from rota.core.jobs.lifecycle import MOVES
from rota.core.jobs.options import FIELDS
from rota.runtime import events
from rota.tasks.handle import PROMISED_ORDER
from rota.worker.options import WorkerOptions

PAGES = all_pages()
RUNNER = Path(__file__).with_name("page_runner.py")
SERVER = "://localhost/shop"  # the PostgreSQL server of the examples
MACHINE_PATHS = re.compile(r"/(?:home|root|Users|work|tmp|mnt|private)/|[A-Z]:\\")
RUNNABLE = [page for page in PAGES if any(block.is_run and block.language != "toml" for block in page.blocks)]


def page(name: str) -> Page:
    return Page(ROOT / name)


def named(pages: list[Page]) -> list[object]:
    return [pytest.param(page, id=page.name) for page in pages]


# --- examples run --------------------------------------------------------------------------


@pytest.mark.parametrize("page", named(RUNNABLE))
def test_examples_of_the_page_run(page: Page, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    blocks = [block for block in page.blocks if block.is_run]
    server = SERVER
    if any(SERVER in block.text for block in blocks):
        server = "://" + request.getfixturevalue("postgres_url").partition("://")[2]
    folder = tmp_path / "shop"
    folder.mkdir()
    steps = [step(page, block, server) for block in blocks]
    (tmp_path / "steps.json").write_text(json.dumps(steps), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(RUNNER), str(tmp_path / "steps.json")],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, f"{page.name}\n{done.stdout}\n{done.stderr}"


def step(page: Page, block: Block, server: str) -> dict[str, object]:
    return {
        "page": page.name,
        "line": block.line,
        "language": block.language,
        "file": block.file,
        "text": block.text.replace(SERVER, server),
    }


def environment() -> dict[str, str]:
    beside_python = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": os.pathsep.join((beside_python, os.environ.get("PATH", ""))),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "error::RuntimeWarning",
    }


def test_every_python_block_is_python_even_where_it_is_not_run() -> None:
    for page in PAGES:
        for block in page.blocks:
            if block.language == "python":
                source = "\n" * (block.line - 1) + block.text
                compile(source, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def test_every_block_has_a_language() -> None:
    assert [(page.name, b.line) for page in PAGES for b in page.blocks if not b.language] == []


# --- what is mentioned exists ------------------------------------------------------------------------


@pytest.mark.parametrize("page", named([page for page in PAGES if any(page.commands())]))
def test_commands_of_the_page_exist(page: Page) -> None:
    problems = [problem_of(command) for command in page.commands()]
    assert [problem for problem in problems if problem is not None] == []


def problem_of(line: str) -> str | None:
    """What is wrong with the command line ``rota LINE``; None if every word of it is known."""
    command: click.Command = root
    known = flags(root)
    takes_value = False
    for word in line.split():
        if takes_value:
            takes_value = False
        elif word.startswith("-"):
            flag, has_value, _ = word.partition("=")
            if flag not in known:
                return f"rota {line}: there is no option {flag}"
            takes_value = not has_value and not known[flag]
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return f"rota {line}: there is no command {word!r}"
            command = found
            known |= flags(command)
        elif not any(isinstance(p, click.Argument) for p in command.params):
            return f"rota {line}: takes no argument {word!r}"
    return None


def flags(command: click.Command) -> dict[str, bool]:
    """Each option of the command, and whether it is a switch."""
    given = {
        name: bool(option.is_flag or option.count)
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }
    return {**given, "--help": True, "-h": True}


@pytest.mark.parametrize("page", named(PAGES))
def test_links_of_the_page_work(page: Page) -> None:
    for link in page.links:
        target, _, anchor = link.partition("#")
        path = (page.path.parent / target).resolve() if target else page.path
        assert path.exists(), f"{page.name}: {link}"
        if anchor and path.suffix == ".md":
            assert anchor in Page(path).anchors, f"{page.name}: {link}"


@pytest.mark.parametrize("page", named(PAGES))
def test_the_page_names_no_path_of_a_machine(page: Page) -> None:
    assert MACHINE_PATHS.findall(page.text) == []


# --- every page has the same shape --------------------------------------------------------------

GUIDES = [page for page in PAGES if page.name.startswith("docs/") and "/decisions/" not in page.name]
OTHER_SHAPE = ("docs/index.md", "docs/howto/dashboard.md", "docs/reference/writing-a-store.md")
SHAPED = [page for page in GUIDES if page.name not in OTHER_SHAPE]


@pytest.mark.parametrize("page", named(SHAPED))
def test_the_page_has_a_title_and_then_a_summary(page: Page) -> None:
    title, blank, summary, after = page.text.split("\n")[:4]
    assert title.startswith("# ") and (blank, after) == ("", "")
    assert summary[0].isalnum() and summary.endswith("."), summary


@pytest.mark.parametrize("page", named(SHAPED))
def test_the_page_ends_with_see_also(page: Page) -> None:
    headings = [line for line in page.prose.split("\n") if line.startswith("## ")]
    assert headings[-1] == "## See also"


# --- what exists is documented -------------------------------------------------------------------


def test_every_public_name_is_in_the_reference() -> None:
    shown = {code for page in PAGES if "docs/reference/" in page.name for code in page.inline_code}
    names = {re.split(r"[(\s:]", code)[0] for code in shown}
    assert sorted(set(rota.__all__) - names) == []


def table_rows(page: Page) -> dict[str, str]:
    """The rows of the page's tables by the name in their first cell."""
    rows = [line for line in page.prose.splitlines() if line.startswith("| `")]
    return {row.split("`")[1]: row for row in rows}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("docs/reference/events.md", list(events.NAMES)),
        ("docs/reference/task-options.md", list(FIELDS)),
        (
            "docs/reference/worker-options.md",
            [n for n in WorkerOptions.__struct_fields__ if n != "heartbeat_thread"],
        ),
        ("docs/reference/job.md", PROMISED_ORDER),
        ("docs/reference/errors.md", [n for n in vars(errors) if isinstance(vars(errors)[n], type)]),
    ],
)
def test_the_reference_has_a_row_for_every(name: str, expected: list[str]) -> None:
    outside = {"Mapping", "Any"}
    aliases = {"shutdown_timeout_s": "shutdown_timeout"}
    rows = table_rows(page(name))
    assert [each for each in expected if aliases.get(each, each) not in rows and each not in outside] == []


def test_every_metric_is_documented() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/rota/admin").glob("*.py"))
    names = set(re.findall(r'"(rota_[a-z_]+)", "(?:gauge|counter|histogram)"', sources))
    assert len(names) > 5
    assert sorted(names - page("docs/howto/monitor.md").inline_code) == []


def test_every_command_and_option_is_in_the_reference() -> None:
    text = page("docs/reference/cli.md").text
    assert [name for name in COMMANDS if f"rota {name}" not in text] == []
    assert [flag for flag in sorted(all_flags(root)) if flag not in text] == []


def all_flags(command: click.Command) -> set[str]:
    found = {flag for flag in flags(command) if flag.startswith("--")}
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None, name
            found |= all_flags(below)
    return found


def test_the_state_diagram_shows_exactly_the_legal_moves() -> None:
    (diagram,) = (b.text for b in page("docs/concepts.md").blocks if b.language == "mermaid")
    drawn = {(a, b) for a, b in re.findall(r"(\w+) --> (\w+)", diagram)}
    assert drawn == {(str(before), str(after)) for before, moves in MOVES.items() for after in moves}


def test_the_error_tree_of_the_reference_is_the_one_in_the_code() -> None:
    tree = next(b.text for b in page("docs/reference/errors.md").blocks if b.language == "text")
    drawn: dict[str, str] = {}
    path: list[str] = []
    for line in tree.splitlines():
        name = line.lstrip("│├└─ ")
        depth = (len(line) - len(name)) // 4
        path[depth:] = [name]
        drawn[name] = path[depth - 1] if depth else "Exception"
    found = {
        kind.__name__: kind.__bases__[0].__name__
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.RotaError)
    }
    assert drawn == found


def test_every_decision_is_in_the_index() -> None:
    index = page("docs/decisions/README.md")
    records = sorted(path.name for path in (DOCS / "decisions").glob("[0-9]*.md"))
    assert [name for name in records if name not in index.links] == []
    assert [int(name[:4]) for name in records] == list(range(1, len(records) + 1))


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in seen or path.suffix != ".md":
            continue
        seen.add(path)
        links = (link.partition("#")[0] for link in Page(path).links)
        waiting += [(path.parent / link).resolve() for link in links if link]
    assert sorted(p.name for p in PAGES if p.path not in seen) == []


def test_the_readme_names_the_two_commands_of_a_fresh_clone() -> None:
    lines = [line for block in page("README.md").blocks for line in block.text.splitlines()]
    assert {"make run", "make test"} <= {line.split("#")[0].strip() for line in lines}


def test_the_http_reference_matches_the_openapi_document() -> None:
    script = Path(__file__).parents[2] / "tools" / "http_reference.py"
    done = subprocess.run([sys.executable, str(script), "--check"], env=environment(), check=False)
    assert done.returncode == 0, "docs/reference/http.md is out of date: run make generate"
